package main

import (
	"sync"
	"time"

	"github.com/pion/rtcp"
)

const (
	// Seconds between 1900 and 1970 (RFC 5905 §6).
	ntpToUnix = 2_208_988_800
	// Of reports on packets so far back the share of losses is made.
	lossOverNs = int64(time.Second)
	reportsMax = 1024
)

// ntp is a time since 1970 as NTP has it: seconds since 1900 in 32 bits, and the fraction in 32 more.
func ntp(unixNs uint64) uint64 {
	seconds, rest := unixNs/1e9, unixNs%1e9
	return (seconds+ntpToUnix)<<32 | (rest<<32+5e8)/1e9
}

// unixNs is the time since 1970 of such a time.
func unixNs(ntp uint64) uint64 {
	return (ntp>>32-ntpToUnix)*1e9 + (ntp&0xffffffff)*1e9>>32
}

// feedback counts what the viewer reports.
type feedback struct {
	clock clock

	lock    sync.Mutex
	counts  statistics
	reports []report
	rtt     *int64
}

// report is one of transport-wide feedback: packets that it is about, and that were lost of them.
type report struct {
	at          int64
	total, lost int
}

func newFeedback(clock clock) *feedback {
	return &feedback{clock: clock}
}

// listen reads RTCP until the session is over. pion's interceptors see it on the way here.
func (s *session) listen() {
	for {
		packets, _, err := s.sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			if s.feedback.on(packet) {
				s.program.output.say(keyFrame{Said: "key_frame", Session: s.number})
			}
		}
	}
}

// on takes a packet of RTCP: whether it asks for a key frame.
func (f *feedback) on(packet rtcp.Packet) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	switch packet := packet.(type) {
	case *rtcp.PictureLossIndication:
		f.counts.Plis++
		return true
	case *rtcp.FullIntraRequest:
		f.counts.Firs++
		return true
	case *rtcp.TransportLayerNack:
		for _, pair := range packet.Nacks {
			f.counts.Nacks += uint64(len(pair.PacketList()))
		}
	case *rtcp.ReceiverReport:
		for _, about := range packet.Reports {
			f.onReport(about)
		}
	case *rtcp.TransportLayerCC:
		f.reports = append(f.reports, losses(f.clock.now(), packet))
		if len(f.reports) > reportsMax {
			f.reports = f.reports[1:]
		}
	}
	return false
}

// RFC 3550 §6.4.1: the round trip is the time since the last sender report, less the time that it was at the receiver.
func (f *feedback) onReport(about rtcp.ReceptionReport) {
	if about.LastSenderReport == 0 {
		return
	}
	now := uint32(ntp(uint64(time.Now().UnixNano())) >> 16)
	units := int32(now - about.LastSenderReport - about.Delay)
	if units >= 0 {
		rtt := int64(units) * int64(time.Second) >> 16
		f.rtt = &rtt
	}
}

// losses reads what became of packets. Its last chunk may have more symbols than there are packets.
func losses(at int64, packet *rtcp.TransportLayerCC) report {
	found := report{at: at}
	count := func(symbol uint16, times int) {
		times = min(times, int(packet.PacketStatusCount)-found.total)
		found.total += times
		if symbol == rtcp.TypeTCCPacketNotReceived {
			found.lost += times
		}
	}
	for _, chunk := range packet.PacketChunks {
		switch chunk := chunk.(type) {
		case *rtcp.RunLengthChunk:
			count(chunk.PacketStatusSymbol, int(chunk.RunLength))
		case *rtcp.StatusVectorChunk:
			for _, symbol := range chunk.SymbolList {
				count(symbol, 1)
			}
		}
	}
	return found
}

// take is what was counted since the last call, and losses of the last second.
func (f *feedback) take(now int64) statistics {
	f.lock.Lock()
	defer f.lock.Unlock()
	for len(f.reports) > 0 && now-f.reports[0].at > lossOverNs {
		f.reports = f.reports[1:]
	}
	total, lost := 0, 0
	for _, report := range f.reports {
		total, lost = total+report.total, lost+report.lost
	}
	counts := f.counts
	f.counts = statistics{}
	if total > 0 {
		ratio := float64(lost) / float64(total)
		counts.LossRatio = &ratio
	}
	counts.RttNs = f.rtt
	return counts
}
