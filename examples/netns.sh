#!/usr/bin/env bash
# Two hosts and a gateway's place between them, as network namespaces of this machine (needs root):
#
#   nf-client 10.99.1.2 ── nf-inside │ nf-gateway │ nf-outside ── 10.99.2.2 nf-server
#
#   examples/netns.sh up      makes them
#   examples/netns.sh down    takes them away
#   ip netns exec nf-gateway nicforge live examples/nat-netns.toml
#
# NF_SUFFIX names another set of them.
set -euo pipefail
suffix=${NF_SUFFIX:-}
client=nf-client$suffix gateway=nf-gateway$suffix server=nf-server$suffix

down() {
    for space in "$client" "$gateway" "$server"; do
        ip netns del "$space" 2>/dev/null || true
    done
}

# Gateway's end, host's namespace, host's address, host's hardware address.
cable() {
    ip -n "$gateway" link add "$1" type veth peer name eth0 netns "$2"
    ip -n "$2" link set eth0 address "$4"
    ip -n "$2" addr add "$3/24" dev eth0
    ip -n "$2" link set lo up
    ip -n "$2" link set eth0 up
    ip -n "$gateway" link set "$1" up
    ip -n "$2" route add default via "${3%.*}.1"
}

up() {
    down
    for space in "$client" "$gateway" "$server"; do
        ip netns add "$space"
        # Nothing but what is asked for: no router advertisements, no neighbours of version 6.
        ip netns exec "$space" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
            net.ipv6.conf.default.disable_ipv6=1
    done
    # The gateway's own: Prometheus asks there.
    ip -n "$gateway" link set lo up
    cable nf-inside "$client" 10.99.1.2 02:00:0a:63:01:02
    cable nf-outside "$server" 10.99.2.2 02:00:00:01:00:00
}

case ${1:-} in
up) up ;;
down) down ;;
*)
    echo "usage: examples/netns.sh up|down" >&2
    exit 2
    ;;
esac
