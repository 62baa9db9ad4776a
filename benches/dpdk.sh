#!/usr/bin/env bash
# DPDK's two ways between processes, for comparison with `cargo bench --bench live`: testpmd sends
# (txonly) to another that takes (rxonly), over net_memif, and over net_vhost with net_virtio_user.
# Prints million packets per second that the receiver took. Needs root, DPDK 22.11 (Debian: dpdk) and
# 512 huge pages of 2 MB, which it sets aside for as long as it runs.
set -euo pipefail
if ! command -v dpdk-testpmd >/dev/null; then
    echo "skipped: dpdk-testpmd is not here (apt-get install dpdk)"
    exit 0
fi
pages=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
before=$(cat "$pages")
if ! echo 512 >"$pages" 2>/dev/null || [ "$(cat "$pages")" -lt 400 ]; then
    echo "skipped: 512 huge pages cannot be set aside"
    exit 0
fi
folder=$(mktemp -d)
trap 'echo "$before" >"$pages"; rm -rf "$folder"' EXIT
seconds=${SECONDS_EACH:-5}

# Name, bytes, the receiver's device, the sender's.
measure() {
    local name=$1 bytes=$2 receiver=$3 sender=$4
    local common=(--no-pci --no-telemetry -m 256)
    (sleep $((seconds + 4))) | dpdk-testpmd "${common[@]}" -l 0,1 --file-prefix=rx --vdev="$receiver" -- \
        --forward-mode=rxonly --stats-period 1 --no-mlockall >"$folder/rx" 2>&1 &
    local receives=$!
    sleep 2
    (sleep $((seconds + 1))) | dpdk-testpmd "${common[@]}" -l 1,0 --file-prefix=tx --vdev="$sender" -- \
        --forward-mode=txonly --txpkts="$bytes" --no-mlockall --stats-period 1 >"$folder/tx" 2>&1 || true
    wait "$receives" || true
    # The middle of what it said each second.
    sed -n 's/.*Rx-pps: *\([0-9]*\).*/\1/p' "$folder/rx" | sort -n | awk -v name="$name" -v bytes="$bytes" '
        { rates[NR] = $1 }
        END { if (NR == 0) print name, bytes, "B: no rate"; else printf "%-12s %5d B %8.2f Mpps (best second %.2f)\n", name, bytes, rates[int((NR + 1) / 2)] / 1e6, rates[NR] / 1e6 }'
}

for bytes in 64 1500; do
    measure memif "$bytes" "net_memif0,role=server,socket=$folder/memif.sock,socket-abstract=no" \
        "net_memif0,role=client,socket=$folder/memif.sock,socket-abstract=no"
    measure vhost "$bytes" "net_vhost0,iface=$folder/vhost.sock" \
        "net_virtio_user0,path=$folder/vhost.sock,queues=1"
done
