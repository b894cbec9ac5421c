extern "C" int plugin_dependency() { return 42; }
