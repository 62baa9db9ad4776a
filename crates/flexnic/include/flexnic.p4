// What Nicforge's NIC adds to v1model: words for the host that travel with the packet's completion.
//
// The DMA pipeline of FlexNIC (ASPLOS 2016, table 1) has its place here; it is not part of this version.
#ifndef NICFORGE_FLEXNIC_P4
#define NICFORGE_FLEXNIC_P4

#include <v1model.p4>

// Puts 64 bits into the completion that the host reads with the packet.
extern void set_mark(in bit<64> mark);
// Puts the packet on this receive queue of the host.
extern void set_queue(in bit<16> queue);

#endif
