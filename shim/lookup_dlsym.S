// dlsym, as the program sees it.
//
// The C library's dlsym looks at its return address: RTLD_NEXT searches behind the calling library,
// RTLD_DEFAULT in the calling library's own scope. So it has to be reached by a jump, with the
// caller's return address, registers and stack as they came. Only a look-up of a name that begins
// with "cu" and a capital, in an explicit handle, where the caller does not matter, goes to
// fragshim_lookup_explicit (lookup.cpp). RTLD_NEXT and RTLD_DEFAULT need no help: our functions
// are exported by the driver's names, and the search finds them where it would find the driver's.

#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.hidden	fragshim_real_dlsym
	.hidden	fragshim_find_dlsym
	.hidden	fragshim_lookup_explicit

	.text
	.globl	dlsym
	.type	dlsym, %function
	.p2align 4

#if defined(__x86_64__)
dlsym:  // rdi: handle, rsi: name
	.cfi_startproc
	_CET_ENDBR
	testq	%rsi, %rsi
	je	.Lreal
	cmpb	$'c', (%rsi)
	jne	.Lreal
	cmpb	$'u', 1(%rsi)
	jne	.Lreal
	movzbl	2(%rsi), %eax
	subl	$'A', %eax
	cmpl	$25, %eax
	ja	.Lreal
	leaq	1(%rdi), %rax  // RTLD_NEXT is -1, RTLD_DEFAULT 0
	cmpq	$1, %rax
	jbe	.Lreal
	movq	(%rsp), %rdx  // the caller
	jmp	fragshim_lookup_explicit
.Lreal:
	movq	fragshim_real_dlsym(%rip), %rax
	testq	%rax, %rax
	je	.Lfind
	jmp	*%rax
.Lfind:  // the first look-up of this process
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	fragshim_find_dlsym
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc

#elif defined(__aarch64__)
dlsym:  // x0: handle, x1: name
	.cfi_startproc
	hint	#34  // bti c
	cbz	x1, .Lreal
	ldrb	w2, [x1]
	cmp	w2, #'c'
	b.ne	.Lreal
	ldrb	w2, [x1, #1]
	cmp	w2, #'u'
	b.ne	.Lreal
	ldrb	w2, [x1, #2]
	sub	w2, w2, #'A'
	cmp	w2, #25
	b.hi	.Lreal
	add	x2, x0, #1  // RTLD_NEXT is -1, RTLD_DEFAULT 0
	cmp	x2, #1
	b.ls	.Lreal
	mov	x2, x30  // the caller
	b	fragshim_lookup_explicit
.Lreal:
	adrp	x16, fragshim_real_dlsym
	ldr	x16, [x16, #:lo12:fragshim_real_dlsym]
	cbz	x16, .Lfind
	br	x16
.Lfind:  // the first look-up of this process
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	stp	x0, x1, [sp, #16]
	bl	fragshim_find_dlsym
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore 29
	.cfi_restore 30
	br	x16
	.cfi_endproc

#else
#error "fragshim knows x86-64 and aarch64 only"
#endif

	.size	dlsym, . - dlsym
	.section .note.GNU-stack, "", %progbits
