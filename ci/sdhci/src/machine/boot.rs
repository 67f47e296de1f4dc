//! From the boot loader to [`main`](crate::main): PVH starts a processor in 32-bit mode without
//! paging.

use core::arch::global_asm;

// The note tells the loader where to begin. Pages of 2 MiB map the first 4 GiB to themselves; from
// 3 GiB on they are not cached, as devices are there.
global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_entry

    .text
    .code32
    .global pvh_entry
pvh_entry:
    cli
    cld
    movl $stack_end, %esp

    movl $tables, %eax
    leal 0x1003(%eax), %edx
    movl %edx, (%eax)
    leal 0x1000(%eax), %edi
    leal 0x2003(%eax), %edx
    movl $4, %ecx
1:  movl %edx, (%edi)
    addl $8, %edi
    addl $0x1000, %edx
    loop 1b

    leal 0x2000(%eax), %edi
    movl $0x83, %edx
    movl $2048, %ecx
2:  cmpl $0xc0000000, %edx
    jb 3f
    orl $0x18, %edx
3:  movl %edx, (%edi)
    addl $8, %edi
    addl $0x200000, %edx
    loop 2b

    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000000, %eax
    movl %eax, %cr0
    lgdt descriptors_at
    ljmp $8, $long_mode

    .code64
long_mode:
    xorl %eax, %eax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    xorl %ebp, %ebp
    call start
    ud2

    .section .rodata
    .balign 8
descriptors:
    .quad 0, 0x00af9b000000ffff
descriptors_at:
    .word 15
    .quad descriptors

    .bss
    .balign 4096
tables:
    .skip 0x6000
    .skip 0x10000
stack_end:
    "#,
    options(att_syntax)
);

/// The first Rust code.
#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    super::interrupt::set_up();
    crate::main()
}
