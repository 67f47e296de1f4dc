# Boots pinned kernels in QEMU without KVM, for the findings that source this file: those of Debian
# 12 in KERNELS, those of `unpack_trixie`, and others that the caller unpacks in the folder
# `kernels`. Some five seconds per kernel. A kernel is named by its package or by its version, as in
# `uname -r`.
#
# The caller fills the folder `guest` with its `/init`, whose last line begins with `seen: ` and a
# word that it passes to `boot`. `. /prepare` there makes the programs of busybox, the usual
# folders of the kernel and `load_scsi_debug` available. Needs packages.bash, and some 300 MB in the
# temporary folder.

KERNELS=(
    linux-image-6.1.0-50-cloud-amd64=6.1.176-1
    linux-image-6.12.117+deb12-cloud-amd64=6.12.117-1~deb12u1
)
QEMU_DEVICES=()
unpack_programs qemu-system-{x86,common}=1:7.2+dfsg-7+deb12u18+b3 qemu-system-data=1:7.2+dfsg-7+deb12u18 seabios=1.16.2-1
unpack_files kernels "${KERNELS[@]}"
unpack_files busybox busybox-static=1:1.35.0-4+deb12u1+b1

busybox="$scratch/busybox/bin/busybox"
guest="$scratch/guest"
mkdir -p "$guest"/{bin,dev,disk,lib/x86_64-linux-gnu,lib64,proc,sys,tmp}
cp "$busybox" "$guest/bin/"
cat >"$guest/prepare" <<'PREPARE'
export PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
# Loads scsi_debug with the parameters $@, and waits for its first disk.
load_scsi_debug() {
    for name in scsi_common scsi_mod sd_mod; do
        [ -s "/$name.ko" ] && insmod "/$name.ko" 2>/dev/null
    done
    insmod /scsi_debug.ko "$@"
    while [ ! -e /sys/block/sda/queue/scheduler ]; do sleep 1; done
}
PREPARE

# Copies the module $2 of the kernel $1 into the guest, as $3. A kernel that has no such module has
# the code built in.
module() {
    local modules path
    for modules in "$scratch"/kernels/{,usr/}lib/modules/"${1#linux-image-}/kernel"; do
        path="$modules/$2.ko"
        if [[ -e "$path.xz" ]]; then
            "$busybox" unxz -c "$path.xz" >"$guest/$3"
        elif [[ -e "$path" ]]; then
            cp "$path" "$guest/$3"
        fi
    done
}

# The image of the kernel $1. Since Linux 7.2, Debian has it in the folder of the modules.
image() {
    local path="$scratch/kernels/boot/vmlinuz-${1#linux-image-}"
    if [[ -e "$path" ]]; then
        echo "$path"
    else
        echo "$scratch/kernels/usr/lib/modules/$1/vmlinuz"
    fi
}

# Unpacks the kernels of Debian 13 in TRIXIE_KERNELS, and puts the programs of the packages $@ of
# Debian 13 where `copy_program` finds them.
TRIXIE_KERNELS=(6.12.117+deb13-cloud-amd64 7.3.4+deb13-cloud-amd64)
unpack_trixie() {
    use_suites trixie trixie-backports
    unpack_files kernels "linux-image-${TRIXIE_KERNELS[0]}=6.12.117-1" \
        linux-{binary,modules}-"${TRIXIE_KERNELS[1]}=7.3.4-1~bpo13+1"
    unpack_with_libraries programs_of_trixie "$@"
}

# Copies the program $1 of `unpack_trixie`, a path, and its libraries, into the guest.
copy_program() {
    local programs="$scratch/programs_of_trixie"
    local libraries="$programs/usr/lib/x86_64-linux-gnu"
    cp -L "$programs/$1" "$guest/bin/"
    "$programs/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/ceph" --list "$programs/$1" |
        awk '/=> \// { print $3 }' | xargs -r cp -L -u -t "$guest/lib/x86_64-linux-gnu/"
    cp -L "$libraries/ld-linux-x86-64.so.2" "$guest/lib64/"
}

# As `boot`, with null_blk.ko, and configfs.ko where the kernel has that as a module.
boot_with_null_blk() {
    module "$1" drivers/block/null_blk/null_blk null_blk.ko
    module "$1" fs/configfs/configfs configfs.ko
    boot "$@"
}

# Copies the modules of the kernel $1 that `load_scsi_debug` needs, and leaves none of another one.
prepare_scsi_debug() {
    local name
    rm -f "$guest"/*.ko
    for name in scsi_common scsi_mod sd_mod scsi_debug; do module "$1" "drivers/scsi/$name" "$name.ko"; done
}

# As `boot`, with the modules that `load_scsi_debug` needs.
boot_with_scsi_debug() {
    prepare_scsi_debug "$1"
    boot "$@"
}

# Sets `seen` to the lines that the guest prints after `seen: ` under the kernel $1.
# The last one begins with $2. QEMU gets the arguments QEMU_DEVICES of the caller, if any. On a busy
# machine, the kernel may find that its timer does not tick, and panic, so it does not look.
boot() {
    (cd "$guest" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$scratch/initramfs"
    if ! program qemu-system-x86_64 -L "$scratch/programs/usr/share/qemu" -L "$scratch/programs/usr/share/seabios" \
        -accel tcg -cpu max -m 512 -nodefaults -display none -serial stdio -no-reboot \
        -kernel "$(image "$1")" -initrd "$scratch/initramfs" \
        -append 'console=ttyS0 quiet panic=-1 no_timer_check' \
        "${QEMU_DEVICES[@]}" </dev/null >"$scratch/console" || ! grep -q "seen: $2" "$scratch/console"; then
        cat "$scratch/console" >&2
        echo "the machine in QEMU did not run to its end" >&2
        exit 2
    fi
    seen="$(tr -d '\r' <"$scratch/console" | sed -n 's/^.*seen: //p')"
}

# Boots each kernel, after `prepare PACKAGE` if the caller has such a function, and fails unless
# each prints $2; $1 is as for `boot`.
expect_of_each_kernel() {
    local kernel status=0
    for kernel in "${KERNELS[@]}"; do
        if declare -F prepare >/dev/null; then prepare "${kernel%%=*}"; fi
        boot "${kernel%%=*}" "$1"
        printf '%s\n' "Linux ${kernel##*=}" "$seen"
        [[ "$seen" == "$2" ]] || status=1
    done
    ((status == 0)) || echo "Linux no longer behaves as described" >&2
    exit "$status"
}
