// Stream-ordered memory: blocks in one large range of addresses to which physical chunks are
// mapped as they are needed, and from which whole free chunks go back.
#pragma once
