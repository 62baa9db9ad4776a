// An end of a TCP stream over gVisor's netstack, which speaks Ethernet frames on descriptor 3.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func address(text string) tcpip.Address {
	return tcpip.AddrFromSlice(netip.MustParseAddr(text).AsSlice())
}

// Usage: peer connect|listen 4|6 bytes
func main() {
	mode, version := os.Args[1], os.Args[2]
	total, err := strconv.Atoi(os.Args[3])
	check(err)
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack)
	link, err := fdbased.New(&fdbased.Options{
		FDs: []int{3}, MTU: 1500, EthernetHeader: true, Address: tcpip.LinkAddress("\x02\x00\x00\x09\x00\x02"),
	})
	check(err)
	if err := s.CreateNIC(1, link); err != nil {
		check(fmt.Errorf("%v", err))
	}
	ours, theirs, protocol, bits := "10.9.0.2", "10.9.0.1", ipv4.ProtocolNumber, 24
	if version == "6" {
		ours, theirs, protocol, bits = "fd09::2", "fd09::1", ipv6.ProtocolNumber, 64
	}
	prefixed := tcpip.AddressWithPrefix{Address: address(ours), PrefixLen: bits}
	if err := s.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: protocol, AddressWithPrefix: prefixed}, stack.AddressProperties{}); err != nil {
		check(fmt.Errorf("%v", err))
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}, {Destination: header.IPv6EmptySubnet, NIC: 1}})
	var conn io.ReadWriteCloser
	var shut func() error
	if mode == "listen" {
		l, err := gonet.ListenTCP(s, tcpip.FullAddress{NIC: 1, Addr: address(ours), Port: 7000}, protocol)
		check(err)
		c, err := l.Accept()
		check(err)
		conn, shut = c, c.(*gonet.TCPConn).CloseWrite
	} else {
		if version == "6" {
			time.Sleep(1500 * time.Millisecond) // duplicate address detection
		}
		c, err := gonet.DialTCP(s, tcpip.FullAddress{NIC: 1, Addr: address(theirs), Port: 7000}, protocol)
		check(err)
		conn, shut = c, c.CloseWrite
	}
	sent := make([]byte, total)
	for at := range sent {
		sent[at] = byte(at * 7 / 3)
	}
	go func() {
		_, err := conn.Write(sent)
		check(err)
		check(shut())
	}()
	have, err := io.ReadAll(conn)
	check(err)
	if !bytes.Equal(have, sent) {
		check(fmt.Errorf("%d bytes back, which differ from the %d sent", len(have), len(sent)))
	}
	conn.Close()
	time.Sleep(200 * time.Millisecond)
}
