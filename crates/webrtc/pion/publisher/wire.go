package main

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/transport/v4"
	"github.com/pion/transport/v4/stdnet"
	"golang.org/x/sys/unix"
)

const (
	markURI    = "urn:x-suiro:frame-mark"
	captureURI = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
	twccURI    = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

	// Headers of IP and UDP.
	ipv4Bytes = 20 + 8
	ipv6Bytes = 40 + 8

	// A mark, of which the last two bytes are how long the frame has waited, in units of 20 µs
	// (crates/payload/src/mark.rs).
	markBytes  = 11
	waitUnitNs = 20_000
	waitedLong = 0xffff

	// Frames whose marks are remembered.
	framesMax = 512
	// Packets that may wait for the pacer.
	waitingMax = 4096
	// The video and its retransmissions.
	streamsMax = 2
)

// clock counts from the trial's epoch.
type clock struct {
	epoch int64
}

func (c clock) now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return max(now.Nano()-c.epoch, 0)
}

// wire is the sockets of a session, and counts what passes them.
type wire struct {
	*stdnet.Net
	sent, received atomic.Uint64
}

func (w *wire) ListenUDP(network string, at *net.UDPAddr) (transport.UDPConn, error) {
	conn, err := w.Net.ListenUDP(network, at)
	if err != nil {
		return nil, err
	}
	return &counted{UDPConn: conn, wire: w}, nil
}

type counted struct {
	transport.UDPConn
	wire *wire
}

func (c *counted) ReadFrom(into []byte) (int, net.Addr, error) {
	n, from, err := c.UDPConn.ReadFrom(into)
	if err == nil {
		c.wire.received.Add(ipBytes(n, from))
	}
	return n, from, err
}

func (c *counted) WriteTo(bytes []byte, to net.Addr) (int, error) {
	n, err := c.UDPConn.WriteTo(bytes, to)
	if err == nil {
		c.wire.sent.Add(ipBytes(n, to))
	}
	return n, err
}

func ipBytes(payload int, other net.Addr) uint64 {
	if udp, ok := other.(*net.UDPAddr); ok && udp.IP.To4() == nil {
		return uint64(payload) + ipv6Bytes
	}
	return uint64(payload) + ipv4Bytes
}

// pacer is pion's, and counts what waits in it. pion adds a stream by its main SSRC and drops packets of others: it would never
// send what NACK asks for, which has an SSRC of its own (RFC 4588). So this adds those when they come.
type pacer struct {
	*gcc.LeakyBucketPacer
	clock clock

	lock    sync.Mutex
	waiting []waiting
	bytes   int
	stream  interceptor.RTPWriter
	known   map[uint32]bool
}

type waiting struct {
	since int64
	bytes int
}

func (p *pacer) Write(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
	size := header.MarshalSize() + len(payload)
	p.lock.Lock()
	if !p.known[header.SSRC] && len(p.known) < streamsMax {
		p.known[header.SSRC] = true
		p.LeakyBucketPacer.AddStream(header.SSRC, p.stream)
	}
	p.waiting = append(p.waiting, waiting{since: p.clock.now(), bytes: size})
	p.bytes += size
	p.lock.Unlock()
	return p.LeakyBucketPacer.Write(header, payload, attributes)
}

func (p *pacer) AddStream(ssrc uint32, writer interceptor.RTPWriter) {
	leaves := func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
		p.lock.Lock()
		if len(p.waiting) > 0 {
			p.bytes -= p.waiting[0].bytes
			p.waiting = p.waiting[1:]
		}
		p.lock.Unlock()
		return writer.Write(header, payload, attributes)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.stream = interceptor.RTPWriterFunc(leaves)
	p.known = map[uint32]bool{ssrc: true}
	p.LeakyBucketPacer.AddStream(ssrc, p.stream)
}

// queue is the bytes that wait, and for how long the first of them has.
func (p *pacer) queue() (int, int64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if len(p.waiting) == 0 {
		return 0, 0
	}
	return p.bytes, p.clock.now() - p.waiting[0].since
}

func (p *pacer) isFull() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.waiting) >= waitingMax
}

// leaving sees packets after the pacer, as they leave: it completes marks, counts what is sent again, and sets the clock of
// sender reports to that of the camera.
type leaving struct {
	interceptor.NoOp
	clock clock

	lock sync.Mutex
	// The wall clock at the trial's epoch, in nanoseconds since 1970; 0 before the first frame.
	unix   uint64
	frames map[uint32]*left
	first  int64
	begun  bool
	newest uint16
	again  uint64
}

// left is when a frame was captured, and what its mark says of its wait once its first packet has left.
type left struct {
	captured int64
	gone     bool
	waited   uint16
}

func newLeaving(clock clock) *leaving {
	return &leaving{clock: clock, frames: map[uint32]*left{}}
}

// NewInterceptor makes it a factory of itself, for the one connection that it is of.
func (l *leaving) NewInterceptor(string) (interceptor.Interceptor, error) {
	return l, nil
}

// comes is called before a frame's packets are written.
func (l *leaving) comes(number uint32, captured int64, capturedUnix uint64) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.unix = capturedUnix - uint64(captured)
	if len(l.frames) >= framesMax {
		for known := range l.frames {
			if number-known > framesMax/2 {
				delete(l.frames, known)
			}
		}
	}
	l.frames[number] = &left{captured: captured}
}

func (l *leaving) BindLocalStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	id := extension(info, markURI)
	return interceptor.RTPWriterFunc(
		func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
			l.count(header.SequenceNumber, header.SSRC == info.SSRC)
			if mark := header.GetExtension(id); id != 0 && len(mark) == markBytes {
				if err := header.SetExtension(id, l.complete(mark)); err != nil {
					return 0, err
				}
			}
			return writer.Write(header, payload, attributes)
		})
}

// BindRTCPWriter corrects sender reports. pion takes the time at which a frame is written as that of its timestamp, but the
// camera captured it before (RFC 3550 §6.4.1: both times of a report are of the same instant).
func (l *leaving) BindRTCPWriter(writer interceptor.RTCPWriter) interceptor.RTCPWriter {
	return interceptor.RTCPWriterFunc(func(packets []rtcp.Packet, attributes interceptor.Attributes) (int, error) {
		l.lock.Lock()
		unix := l.unix
		l.lock.Unlock()
		for _, packet := range packets {
			if report, ok := packet.(*rtcp.SenderReport); ok && unix != 0 {
				report.RTPTime = uint32((unixNs(report.NTPTime) - unix) * 9 / 100_000)
			}
		}
		return writer.Write(packets, attributes)
	})
}

func extension(info *interceptor.StreamInfo, uri string) uint8 {
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == uri {
			return uint8(extension.ID)
		}
	}
	return 0
}

func (l *leaving) count(number uint16, main bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !main {
		l.again++
		return
	}
	if !l.begun {
		l.begun, l.first, l.newest = true, l.clock.now(), number
		return
	}
	if int16(number-l.newest) <= 0 {
		l.again++
		return
	}
	l.newest = number
}

// complete is the mark with how long its frame has waited. A packet that is sent again has the same.
func (l *leaving) complete(mark []byte) []byte {
	l.lock.Lock()
	defer l.lock.Unlock()
	complete := append([]byte(nil), mark...)
	frame, ok := l.frames[binary.BigEndian.Uint32(mark)]
	if !ok {
		return complete
	}
	if !frame.gone {
		units := (max(l.clock.now()-frame.captured, 0) + waitUnitNs/2) / waitUnitNs
		frame.gone, frame.waited = true, uint16(min(units, waitedLong))
	}
	binary.BigEndian.PutUint16(complete[markBytes-2:], frame.waited)
	return complete
}

// take is when the first packet left, if one has, and how many were sent again since the last call.
func (l *leaving) take() (*int64, uint64) {
	l.lock.Lock()
	defer l.lock.Unlock()
	again := l.again
	l.again = 0
	if !l.begun {
		return nil, again
	}
	first := l.first
	return &first, again
}
