//! Hosts as network namespaces: cables, addresses, routes, names.
