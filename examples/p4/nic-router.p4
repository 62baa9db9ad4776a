// router.p4 on a NIC with one wire: what the host sends has been routed by software, and leaves.
#define HOST_PORT 100
#define WIRE_PORT 0
#include "router.p4"
