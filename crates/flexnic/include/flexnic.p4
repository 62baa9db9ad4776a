// Additions of Nicforge's NIC to v1model, and to PNA where pna.p4 is included before: words for the host that travel with
// the packet's completion, and the package `FlexNIC` with a DMA pipeline (ASPLOS 2016, section 2.2).
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

// ---- Package FlexNIC: ingress, egress and DMA pipeline.

// Whether the buffer at the head of the packet's queue takes the packet as it came.
enum bit<2> buffer_t {
    FITS = 0,
    NONE = 1,
    TOO_SHORT = 2,
    INVALID = 3
}

// The NIC's words to a program about a packet; a program's pipelines have no other state in common than registers, tables
// and the mark.
struct flexnic_t {
    // The port that it came in by, or that it leaves by.
    bit<9>   port;
    // Bytes of the packet.
    bit<32>  length;
    // When its first bit came in, in picoseconds.
    bit<64>  stamp;
    // The hash that RSS computes, what the checksum unit found, and the queue that steering chose.
    bit<32>  hash;
    bit<32>  flags;
    bit<16>  queue;
    // Bytes of each frame where the packet stands for several, else 0.
    bit<16>  segment;
    // DMA pipeline: what ingress put into the mark. Egress: the mark of the host's packet.
    bit<64>  mark;
    // Egress: the tag of a copy; 0 of a packet that is none.
    bit<8>   tag;
    // DMA pipeline: the queue's entry at its head, the buffer there, and what that is good for.
    bit<64>  entry;
    bit<64>  buffer;
    buffer_t state;
    error    parser_error;
}

enum bit<1> dma_direction_t {
    TO_MEMORY = 0,
    FROM_MEMORY = 1
}

// The change that the transfer makes to words of 8 bytes in memory, by those of the packet, most significant byte first. From memory: the
// packet gets the words before.
enum bit<2> dma_atomic_t {
    NONE = 0,
    ADD = 1,
    OR = 2,
    AND = 3
}

// Table 1: bytes of the packet, as the deparser leaves it, from or to memory.
struct dma_t {
    bit<32>         offset;
    bit<32>         length;
    dma_direction_t direction;
    bit<64>         address;
    // Where the data goes: 0 and 3 as the machine has it, with DDIO the last-level cache; 1 memory, past all caches; 2 a core's own cache,
    // for which no machine so far has a way: the packet is the drop dma_cache.
    bit<2>          cache;
    // The core of that cache.
    bit<8>          core;
    dma_atomic_t    atomic;
}

// Why a packet is not taken; each is a counted drop.
enum bit<3> refusal_t {
    // The queue has no free entry.
    QUEUE_FULL = 0,
    // The packet is longer than a buffer.
    TOO_LONG = 1,
    // The host gave a buffer that is none.
    BAD_BUFFER = 2,
    // Its window or its rate lets nothing out now.
    NO_WINDOW = 3,
    // It came before.
    DUPLICATE = 4
}

// Asks the DMA engine for a transfer; the engine makes the transfers of a packet in the order of the calls, all or none.
extern void dma(in dma_t transfer);
// The same to memory, from memory, without the fields that are zero.
extern void dma_write(in bit<64> address, in bit<32> offset, in bit<32> length);
extern void dma_read(in bit<64> address, in bit<32> offset, in bit<32> length);
// The packet is refused. Transfers that the DMA pipeline asks for, to tell the host, are made.
extern void refuse(in refusal_t why);
// The packet ends here: a drop.
extern void discard();
// Ingress, egress: the packet was for the NIC itself, which has it now. It ends here, and is no drop.
extern void consume();
// The packet leaves by this port instead of going on to the host, through egress.
extern void send_to(in bit<9> port);
// Ingress: a copy of the packet, as the deparser leaves it, goes to egress with this tag and leaves by this port.
extern void copy_to(in bit<9> port, in bit<8> tag);

parser FlexParser<H, M>(packet_in packet, out H hdr, inout M meta, inout flexnic_t nic);
control FlexIngress<H, M>(inout H hdr, inout M meta, inout flexnic_t nic);
control FlexEgress<H, M>(inout H hdr, inout M meta, inout flexnic_t nic);
control FlexDma<H, M>(inout H hdr, inout M meta, inout flexnic_t nic);
control FlexDeparser<H>(packet_out packet, in H hdr);

package FlexNIC<H, M>(
    FlexParser<H, M> parse,
    FlexIngress<H, M> ingress,
    FlexEgress<H, M> egress,
    FlexDma<H, M> dma_pipeline,
    FlexDeparser<H> deparse);

#endif
