// What Nicforge's NIC adds to v1model, and to PNA where pna.p4 is included before: words for the host that travel with
// the packet's completion.
//
// The DMA pipeline of FlexNIC (ASPLOS 2016, table 1) has its place here; it is not part of this version.
#ifndef NICFORGE_FLEXNIC_P4
#define NICFORGE_FLEXNIC_P4

#ifndef __PNA_P4__
#include <v1model.p4>
#endif

// Puts 64 bits into the completion that the host reads with the packet.
extern void set_mark(in bit<64> mark);
// Sets bits 8 to 31 of the flags in the completion; the NIC's own verdicts are in bits 0 to 7.
extern void set_flags(in bit<24> flags);
// Puts the packet on this receive queue of the host.
extern void set_queue(in bit<16> queue);

#endif
