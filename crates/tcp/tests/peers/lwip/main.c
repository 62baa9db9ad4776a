// An end of a TCP stream over lwIP, which speaks Ethernet frames on descriptor 3.
// Usage: peer connect|listen 4|6 bytes

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lwip/api.h"
#include "lwip/etharp.h"
#include "lwip/ethip6.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/sockets.h"
#include "lwip/sys.h"
#include "lwip/tcpip.h"

static struct netif device;

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static err_t send_frame(struct netif *netif, struct pbuf *p)
{
	unsigned char frame[2048];
	u16_t len = pbuf_copy_partial(p, frame, sizeof(frame), 0);

	(void)netif;
	return write(3, frame, len) == len ? ERR_OK : ERR_IF;
}

static err_t start_device(struct netif *netif)
{
	static const unsigned char mac[6] = { 2, 0, 0, 9, 0, 2 };

	netif->name[0] = 'p';
	netif->name[1] = 'r';
	netif->mtu = 1500;
	netif->hwaddr_len = 6;
	memcpy(netif->hwaddr, mac, 6);
	netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP | NETIF_FLAG_MLD6;
	netif->output = etharp_output;
	netif->output_ip6 = ethip6_output;
	netif->linkoutput = send_frame;
	return ERR_OK;
}

static void *receive_frames(void *unused)
{
	unsigned char frame[2048];
	ssize_t len;

	(void)unused;
	while ((len = read(3, frame, sizeof(frame))) > 0) {
		struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)len, PBUF_RAM);

		if (p && (pbuf_take(p, frame, (u16_t)len) != ERR_OK || device.input(p, &device) != ERR_OK))
			pbuf_free(p);
	}
	return NULL;
}

static void started(void *done)
{
	sys_sem_signal(done);
}

static unsigned char *sent;
static int total, stream;

static void *send_stream(void *unused)
{
	int at = 0;

	(void)unused;
	while (at < total) {
		int n = lwip_write(stream, sent + at, total - at > 4000 ? 4000 : total - at);

		if (n <= 0)
			fail("write");
		at += n;
	}
	if (lwip_shutdown(stream, SHUT_WR))
		fail("shutdown");
	return NULL;
}

static void open_stream(int listens, int v6)
{
	struct sockaddr_in in4 = { 0 };
	struct sockaddr_in6 in6 = { 0 };
	struct sockaddr *name = v6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in4;
	socklen_t len = v6 ? sizeof(in6) : sizeof(in4);
	int fd = lwip_socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);

	in4.sin_family = AF_INET;
	in4.sin_port = lwip_htons(7000);
	in6.sin6_family = AF_INET6;
	in6.sin6_port = lwip_htons(7000);
	if (!listens) {
		lwip_inet_pton(AF_INET, "10.9.0.1", &in4.sin_addr);
		lwip_inet_pton(AF_INET6, "fd09::1", &in6.sin6_addr);
		if (lwip_connect(fd, name, len))
			fail("connect");
		stream = fd;
		return;
	}
	if (lwip_bind(fd, name, len) || lwip_listen(fd, 1))
		fail("listen");
	stream = lwip_accept(fd, NULL, NULL);
	if (stream < 0)
		fail("accept");
}

int main(int argc, char **argv)
{
	ip4_addr_t ip, mask, gateway;
	ip6_addr_t ip6;
	s8_t index;
	sys_sem_t done;
	pthread_t reader, writer;
	unsigned char have[4096];
	int at = 0, n;

	if (argc != 4)
		fail("usage: peer connect|listen 4|6 bytes");
	total = atoi(argv[3]);
	sent = malloc(total);
	for (n = 0; n < total; n++)
		sent[n] = (unsigned char)(n * 7L / 3);
	sys_sem_new(&done, 0);
	tcpip_init(started, &done);
	sys_sem_wait(&done);
	IP4_ADDR(&ip, 10, 9, 0, 2);
	IP4_ADDR(&mask, 255, 255, 255, 0);
	IP4_ADDR(&gateway, 0, 0, 0, 0);
	LOCK_TCPIP_CORE();
	netif_add(&device, &ip, &mask, &gateway, NULL, start_device, tcpip_input);
	netif_set_default(&device);
	netif_set_up(&device);
	netif_create_ip6_linklocal_address(&device, 1);
	ip6addr_aton("fd09::2", &ip6);
	netif_add_ip6_address(&device, &ip6, &index);
	netif_ip6_addr_set_state(&device, index, IP6_ADDR_PREFERRED);
	UNLOCK_TCPIP_CORE();
	pthread_create(&reader, NULL, receive_frames, NULL);
	open_stream(!strcmp(argv[1], "listen"), !strcmp(argv[2], "6"));
	pthread_create(&writer, NULL, send_stream, NULL);
	while ((n = lwip_read(stream, have, sizeof(have))) > 0) {
		if (at + n > total || memcmp(have, sent + at, n))
			fail("the echo differs");
		at += n;
	}
	if (n < 0 || at != total)
		fail("the echo is short");
	pthread_join(writer, NULL);
	lwip_close(stream);
	usleep(300000);
	return 0;
}
