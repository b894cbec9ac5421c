// A plugin whose dependency only it can see.
#include <dlfcn.h>

extern "C" {
int plugin_dependency();
int plugin_uses_it() { return plugin_dependency(); }
void* plugin_finds() {
  void* const volatile found = dlsym(RTLD_DEFAULT, "plugin_dependency");  // volatile: no tail call
  return found;
}
}
