// The C library's functions under the versions that its oldest releases have, too. A linker binds to
// the newest version there is where the library is built, though these only moved from libdl and
// libpthread to libc (2.32, 2.34): whatever of ours calls one, the compiler's own libraries
// included, comes here and goes on to the old version.

#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

#if defined(__x86_64__)
#define OLDEST GLIBC_2.2.5
#define GO_ON_TO(name) jmp name@PLT
#elif defined(__aarch64__)
#define OLDEST GLIBC_2.17
#define GO_ON_TO(name) b name
#endif

// A jump: dlopen, dlvsym and dladdr look at their caller.
#define OLDER(name) OLDER_AS(name, name, OLDEST)
#define OLDER_AS(name, older, version)                                                             \
	.symver older_##name, older@version;                                                       \
	.section .text.name, "ax", %progbits;                                                      \
	.hidden name;                                                                              \
	.globl name;                                                                               \
	.type name, %function;                                                                     \
name:                                                                                              \
	.cfi_startproc;                                                                            \
	_CET_ENDBR;                                                                                \
	GO_ON_TO(older_##name);                                                                    \
	.cfi_endproc;                                                                              \
	.size name, . - name

	OLDER(dladdr)
	OLDER(dlopen)
	OLDER(dlvsym)
	OLDER(__pthread_key_create)
	OLDER(pthread_once)
	OLDER(pthread_sigmask)
// What newer headers make of strtol and its like (2.38), where base 2 knows "0b".
	OLDER_AS(__isoc23_strtol, strtol, OLDEST)
	OLDER_AS(__isoc23_strtoll, strtoll, OLDEST)
	OLDER_AS(__isoc23_strtoul, strtoul, OLDEST)
	OLDER_AS(__isoc23_strtoull, strtoull, OLDEST)

	.section .note.GNU-stack, "", %progbits
