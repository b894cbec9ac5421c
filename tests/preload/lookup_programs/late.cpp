// Much of what static TLS is left over for libraries that come late (1,664 bytes less glibc's own).
extern "C" int late_tls() {
  static thread_local __attribute__((tls_model("initial-exec"))) volatile char bytes[1024];
  bytes[1000] = 7;
  return bytes[1000];
}
