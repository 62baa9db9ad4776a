#!/bin/sh
# A guest whose network adapter is plugged into a vhost_user port or a TAP device, under QEMU without hardware help (TCG).
#
#   guest.sh prepare DIR                   Debian's cloud kernel and a small initrd with nvme-cli, into DIR
#   guest.sh run DIR SOCKET COMMAND [ADDRESS GATEWAY]
#   guest.sh run DIR tap:NAME COMMAND [ADDRESS GATEWAY]
#                                          boots it, runs COMMAND in it (sh), and ends
#
# NF_MEMORY is the guest's memory in MiB, 256 if it is not set.
# prepare needs apt-get, dpkg-deb, cpio and busybox (Debian: busybox-static); run needs qemu-system-x86_64.
set -eu

prepare() {
    dir=$1
    mkdir -p "$dir/tree"
    cd "$dir"
    kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    ls "$kernel"_*.deb > /dev/null 2>&1 || apt-get download -q "$kernel"
    rm -rf package
    dpkg-deb -x "$kernel"_*.deb package
    cp package/boot/vmlinuz-* vmlinuz
    rm -rf tree
    mkdir -p tree/bin tree/modules tree/proc tree/sys tree/dev tree/etc
    cp "$(command -v busybox)" tree/bin/busybox
    # Those that are not built in.
    for module in failover net_failover virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_net \
        crc32c_generic nvme-common nvme-core nvme-fabrics nvme-tcp configfs nvmet nvmet-tcp null_blk loop; do
        find package -name "$module.ko*" | while read -r file; do
            cp "$file" tree/modules/
            case $file in
                *.xz) unxz "tree/modules/${file##*/}" ;;
            esac
        done
    done
    # Linux's command for disks, with the libraries that it needs; what has to be there anyway comes from this system.
    for tool in nvme-cli libnvme1 libjson-c5; do
        ls "$tool"_*.deb > /dev/null 2>&1 || apt-get download -q "$tool"
        dpkg-deb -x "$tool"_*.deb package
    done
    cp package/usr/sbin/nvme tree/bin/nvme
    LD_LIBRARY_PATH=$(find "$PWD/package" -name 'lib*.so*' -printf '%h:' | sort -u) ldd package/usr/sbin/nvme |
        grep -o '/[^ ]*' | while read -r library; do
            case $library in
                */ld-linux*) mkdir -p "tree${library%/*}" && cp -L "$library" "tree$library" ;;
                *) mkdir -p tree/lib && cp -L "$library" tree/lib/ ;;
            esac
        done
    cat > tree/init <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2> /dev/null
# Each goes in once those that it needs are there.
for round in 1 2 3 4 5; do
    for module in /modules/*.ko; do
        insmod $module 2> /dev/null && rm $module
    done
done
mount -t configfs config /sys/kernel/config 2> /dev/null
word() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
card=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip link set lo up
ip link set "$card" up
ip addr add "$(word nf_address)" dev "$card"
ip route add default via "$(word nf_gateway)"
echo "guest: begins"
word nf_command | base64 -d > /command
sh /command
echo "guest: ends with $?"
poweroff -f
INIT
    chmod +x tree/init
    (cd tree && find . | cpio --quiet -o -H newc | gzip -1 > ../initrd)
}

run() {
    dir=$1 socket=$2 command=$(printf %s "$3" | base64 -w 0)
    address=${4:-10.99.4.2/24} gateway=${5:-10.99.4.1} memory=${NF_MEMORY:-256}
    case $socket in
        tap:*) set -- -netdev "tap,id=net,ifname=${socket#tap:},script=no,downscript=no" ;;
        *) set -- -chardev "socket,id=port,path=$socket" -netdev vhost-user,id=net,chardev=port,queues=1 ;;
    esac
    # Without vectors: QEMU 7.2 dies of a vhost-user adapter with MSI-X where KVM does not help.
    exec qemu-system-x86_64 -accel tcg -cpu max -m "$memory" -nographic -no-reboot -nodefaults -serial stdio \
        -object memory-backend-memfd,id=memory,size=${memory}M,share=on -machine q35,memory-backend=memory \
        "$@" -device virtio-net-pci,netdev=net,mac=02:00:00:00:04:02,vectors=0,romfile= \
        -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check nf_address=$address nf_gateway=$gateway nf_command=$command"
}

what=${1:-}
shift || true
case $what in
    prepare) prepare "$@" ;;
    run) run "$@" ;;
    *) sed -n '2,8p' "$0" >&2; exit 2 ;;
esac
