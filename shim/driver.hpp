// The real CUDA driver as the shim sees it: one list of the entries that are hooked, one of those
// that are only used, and a table with the address of each.
#pragma once

#include <cuda.h>

#include <cstddef>

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "the shim names _ptsz entries itself; build it without CUDA_API_PER_THREAD_DEFAULT_STREAM"
#endif

// cuda.h renames these to their newest version. The lists below say exactly which they mean.
#undef cuCtxDestroy
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
#undef cuStreamBeginCapture

// Types that older headers lack. A later header's own declarations agree with these.
struct CUgraphEdgeData_st;
#if CUDA_VERSION < 12000
using CUdriverProcAddressQueryResult = int;
#endif

/// Every hooked entry of the driver: X(exported name, CUDA version that brought this ABI,
/// parameters). The version is the one with which cuGetProcAddress is asked for it.
#define FRAGSHIM_HOOKED(X)                                                                         \
  X(cuMemAlloc_v2, 3020, (CUdeviceptr * out, size_t size))                                         \
  X(cuMemFree_v2, 3020, (CUdeviceptr address))                                                     \
  X(cuMemAllocPitch_v2, 3020,                                                                      \
    (CUdeviceptr * out, size_t * pitch, size_t width, size_t height, unsigned int element_size))   \
  X(cuMemAllocAsync, 11020, (CUdeviceptr * out, size_t size, CUstream stream))                     \
  X(cuMemAllocAsync_ptsz, 11020, (CUdeviceptr * out, size_t size, CUstream stream))                \
  X(cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream))                                 \
  X(cuMemFreeAsync_ptsz, 11020, (CUdeviceptr address, CUstream stream))                            \
  X(cuMemAllocFromPoolAsync, 11020,                                                                \
    (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream))                          \
  X(cuMemAllocFromPoolAsync_ptsz, 11020,                                                           \
    (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream))                          \
  X(cuMemPoolGetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value)) \
  X(cuMemPoolSetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value)) \
  X(cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t keep))                                      \
  X(cuMemPoolSetAccess, 11020, (CUmemoryPool pool, const CUmemAccessDesc* access, size_t count))   \
  X(cuMemPoolGetAccess, 11020,                                                                     \
    (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation * location))                      \
  X(cuDeviceSetMemPool, 11020, (CUdevice device, CUmemoryPool pool))                               \
  X(cuMemSetMemPool, 13000,                                                                        \
    (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool))                       \
  X(cuMemGetInfo_v2, 3020, (size_t * free, size_t * total))                                        \
  X(cuIpcGetMemHandle, 4010, (CUipcMemHandle * handle, CUdeviceptr address))                       \
  X(cuPointerSetAttribute, 6000,                                                                   \
    (const void* value, CUpointer_attribute attribute, CUdeviceptr address))                       \
  X(cuMemGetHandleForAddressRange, 11070,                                                          \
    (void* handle, CUdeviceptr address, size_t size, CUmemRangeHandleType type,                    \
     unsigned long long flags))                                                                    \
  X(cuCtxDestroy, 2000, (CUcontext context))                                                       \
  X(cuCtxDestroy_v2, 4000, (CUcontext context))                                                    \
  X(cuDevicePrimaryCtxReset, 7000, (CUdevice device))                                              \
  X(cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device))                                          \
  X(cuDevicePrimaryCtxRelease, 7000, (CUdevice device))                                            \
  X(cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device))                                        \
  X(cuStreamDestroy_v2, 4000, (CUstream stream))                                                   \
  X(cuStreamBeginCapture, 10000, (CUstream stream))                                                \
  X(cuStreamBeginCapture_ptsz, 10000, (CUstream stream))                                           \
  X(cuStreamBeginCapture_v2, 10010, (CUstream stream, CUstreamCaptureMode mode))                   \
  X(cuStreamBeginCapture_v2_ptsz, 10010, (CUstream stream, CUstreamCaptureMode mode))              \
  X(cuStreamBeginCaptureToGraph, 12030,                                                            \
    (CUstream stream, CUgraph graph, const CUgraphNode* dependencies,                              \
     const CUgraphEdgeData_st* edges, size_t count, CUstreamCaptureMode mode))                     \
  X(cuStreamBeginCaptureToGraph_ptsz, 12030,                                                       \
    (CUstream stream, CUgraph graph, const CUgraphNode* dependencies,                              \
     const CUgraphEdgeData_st* edges, size_t count, CUstreamCaptureMode mode))                     \
  X(cuStreamEndCapture, 10000, (CUstream stream, CUgraph * graph))                                 \
  X(cuStreamEndCapture_ptsz, 10000, (CUstream stream, CUgraph * graph))                            \
  X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode * mode))                        \
  X(cuMemAllocManaged, 6000, (CUdeviceptr * out, size_t size, unsigned int flags))                 \
  X(cuMemAllocHost_v2, 3020, (void** out, size_t size))                                            \
  X(cuMemHostAlloc, 2020, (void** out, size_t size, unsigned int flags))                           \
  X(cuMemFreeHost, 2000, (void* host))                                                             \
  X(cuGetProcAddress, 11030, (const char* symbol, void** out, int version, cuuint64_t flags))      \
  X(cuGetProcAddress_v2, 12000,                                                                    \
    (const char* symbol, void** out, int version, cuuint64_t flags,                                \
     CUdriverProcAddressQueryResult* status))

/// Entries the shim calls and leaves alone: X(exported name, parameters).
#define FRAGSHIM_USED(X)                                                                        \
  X(cuInit, (unsigned int flags))                                                               \
  X(cuDriverGetVersion, (int* version))                                                         \
  X(cuGetErrorName, (CUresult error, const char** text))                                        \
  X(cuGetErrorString, (CUresult error, const char** text))                                      \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                              \
  X(cuDeviceGetCount, (int* count))                                                             \
  X(cuDeviceGetName, (char* name, int length, CUdevice device))                                 \
  X(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device))                                          \
  X(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                       \
  X(cuDeviceGetPCIBusId, (char* text, int length, CUdevice device))                             \
  X(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))          \
  X(cuDeviceTotalMem_v2, (size_t * size, CUdevice device))                                      \
  X(cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer))                          \
  X(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device))                          \
  X(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device))                                 \
  X(cuMemGetDefaultMemPool,                                                                     \
    (CUmemoryPool * pool, CUmemLocation * location, CUmemAllocationType type))                  \
  X(cuMemGetMemPool, (CUmemoryPool * pool, CUmemLocation * location, CUmemAllocationType type)) \
  X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int* flags, int* active))            \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                           \
  X(cuCtxGetCurrent, (CUcontext * context))                                                     \
  X(cuCtxSetCurrent, (CUcontext context))                                                       \
  X(cuCtxPushCurrent_v2, (CUcontext context))                                                   \
  X(cuCtxPopCurrent_v2, (CUcontext * context))                                                  \
  X(cuCtxGetDevice, (CUdevice * device))                                                        \
  X(cuCtxGetId, (CUcontext context, unsigned long long* id))                                    \
  X(cuCtxGetApiVersion, (CUcontext context, unsigned int* version))                             \
  X(cuCtxGetFlags, (unsigned int* flags))                                                       \
  X(cuCtxSynchronize, ())                                                                       \
  X(cuCtxRecordEvent, (CUcontext context, CUevent event))                                       \
  X(cuEventCreate, (CUevent * event, unsigned int flags))                                       \
  X(cuEventDestroy_v2, (CUevent event))                                                         \
  X(cuEventRecord, (CUevent event, CUstream stream))                                            \
  X(cuEventRecord_ptsz, (CUevent event, CUstream stream))                                       \
  X(cuEventQuery, (CUevent event))                                                              \
  X(cuEventSynchronize, (CUevent event))                                                        \
  X(cuStreamCreate, (CUstream * stream, unsigned int flags))                                    \
  X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))                    \
  X(cuStreamWaitEvent_ptsz, (CUstream stream, CUevent event, unsigned int flags))               \
  X(cuStreamQuery, (CUstream stream))                                                           \
  X(cuStreamQuery_ptsz, (CUstream stream))                                                      \
  X(cuStreamSynchronize, (CUstream stream))                                                     \
  X(cuStreamSynchronize_ptsz, (CUstream stream))                                                \
  X(cuStreamGetCtx, (CUstream stream, CUcontext * context))                                     \
  X(cuStreamGetCtx_ptsz, (CUstream stream, CUcontext * context))                                \
  X(cuStreamGetFlags, (CUstream stream, unsigned int* flags))                                   \
  X(cuStreamGetId, (CUstream stream, unsigned long long* id))                                   \
  X(cuStreamGetId_ptsz, (CUstream stream, unsigned long long* id))                              \
  X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status))                     \
  X(cuStreamIsCapturing_ptsz, (CUstream stream, CUstreamCaptureStatus * status))                \
  X(cuMemAddressReserve, (CUdeviceptr * out, size_t size, size_t alignment, CUdeviceptr wish,   \
                          unsigned long long flags))                                            \
  X(cuMemAddressFree, (CUdeviceptr address, size_t size))                                       \
  X(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t size,                           \
                  const CUmemAllocationProp* properties, unsigned long long flags))             \
  X(cuMemRelease, (CUmemGenericAllocationHandle handle))                                        \
  X(cuMemMap, (CUdeviceptr address, size_t size, size_t offset,                                 \
               CUmemGenericAllocationHandle handle, unsigned long long flags))                  \
  X(cuMemUnmap, (CUdeviceptr address, size_t size))                                             \
  X(cuMemSetAccess,                                                                             \
    (CUdeviceptr address, size_t size, const CUmemAccessDesc* access, size_t count))            \
  X(cuMemGetAccess,                                                                             \
    (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address))            \
  X(cuMemGetAllocationGranularity, (size_t * out, const CUmemAllocationProp* properties,        \
                                    CUmemAllocationGranularity_flags option))                   \
  X(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * size, CUdeviceptr address))          \
  X(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void* host, unsigned int flags))          \
  X(cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr address))

namespace fragshim {

/// The real entries, by exported name; null where this driver lacks one.
struct Driver {
// NOLINTBEGIN(bugprone-macro-parentheses): they are names to be declared.
#define FRAGSHIM_ENTRY(name, since, parameters) CUresult(CUDAAPI* name) parameters = nullptr;
  FRAGSHIM_HOOKED(FRAGSHIM_ENTRY)
#undef FRAGSHIM_ENTRY
#define FRAGSHIM_ENTRY(name, parameters) CUresult(CUDAAPI* name) parameters = nullptr;
  FRAGSHIM_USED(FRAGSHIM_ENTRY)
#undef FRAGSHIM_ENTRY
  // NOLINTEND(bugprone-macro-parentheses)
};

/// The real driver, found once (libcuda.so.1, loaded if need be) and kept for the life of the
/// process; null while there is none. Thread-safe; one load of an atomic once found.
const Driver* driver() noexcept;

/// As driver(), but only where some part of the program has loaded libcuda.so.1 already.
const Driver* driver_if_loaded() noexcept;

}  // namespace fragshim
