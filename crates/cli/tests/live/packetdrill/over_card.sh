#!/bin/sh
# Runs a script of packetdrill over the card, in a network namespace of its own: over_card.sh FOLDER NICFORGE PACKETDRILL SCRIPT
# FOLDER has card.toml and relay.py.
set -eu
folder=$1 nicforge=$2 packetdrill=$3 script=$4
ip link set lo up
ip link add nf-card type veth peer name nf-wire
ip link set nf-card up
ip link set nf-wire up
# The kernel has the card's address on packetdrill's device and must not answer for it.
nft add table inet quiet
nft 'add chain inet quiet input { type filter hook input priority 0; policy drop; }'
nft add rule inet quiet input iifname lo accept
python3 "$folder/relay.py" nf-wire &
relay=$!
"$nicforge" live "$folder/card.toml" --out "$folder/out" --json >"$folder/live.log" 2>&1 &
card=$!
trap 'kill $relay; kill -INT $card; wait $card' EXIT
until [ -e "$folder/service" ]; do
    kill -0 $card
    sleep 0.05
done
# The card asks for its router by now.
sleep 0.5
timeout 60 "$nicforge" sockets --service "$folder/service" -- "$packetdrill" \
    --ip_version=ipv4 --local_ip=192.168.0.1 --gateway_ip=192.168.0.1 --netmask_ip=255.255.0.0 --remote_ip=192.0.2.1 \
    --tolerance_usecs=30000 --send_omit_free "$script"
