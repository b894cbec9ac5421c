// A library that is no driver, with names that begin like the driver's, and two of its very names.
extern "C" {
int cudnnCreate() { return 1; }
int curl_easy_init() { return 2; }
int cuFFTLike() { return 3; }
int cu() { return 4; }
int c() { return 5; }
int cuMemAlloc_v2() { return 6; }
int cuGetProcAddress() { return 7; }
}
