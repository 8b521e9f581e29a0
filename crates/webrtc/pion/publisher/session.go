package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtp"
	"github.com/pion/transport/v4/stdnet"
	"github.com/pion/webrtc/v4"
)

const (
	// The same as suiro's own end (crates/webrtc/src/sessions.rs).
	connectWithin = 15 * time.Second
	rateEvery     = 50 * time.Millisecond
	// Every second rate comes with statistics, 100 ms apart.
	statisticsEvery = 2
)

// session is a connection to one viewer.
type session struct {
	program   *program
	number    uint64
	peer      *webrtc.PeerConnection
	track     *webrtc.TrackLocalStaticRTP
	sender    *webrtc.RTPSender
	estimator cc.BandwidthEstimator
	pacer     *pacer
	leaving   *leaving
	wire      *wire
	feedback  *feedback

	mark, capture uint8
	done          chan struct{}
	over          sync.Once

	lock      sync.Mutex
	connected bool
	// Whether a key frame was sent: nothing can be decoded before.
	keyed bool
	// Whether frames are left out since too many packets waited.
	behind   bool
	sequence uint16
	leftOut  uint64
}

// open makes a connection of an offer, and its answer.
func open(program *program, number uint64, offer string) (*session, *answered, error) {
	s := &session{program: program, number: number, done: make(chan struct{})}
	s.leaving = newLeaving(program.clock)
	s.feedback = newFeedback(program.clock)
	api, err := s.api()
	if err != nil {
		return nil, nil, err
	}
	s.peer, err = api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, nil, err
	}
	answer, err := s.negotiate(offer)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	go s.listen()
	time.AfterFunc(connectWithin, func() {
		if !s.isConnected() {
			s.end("unanswered")
		}
	})
	return s, answer, nil
}

// api has the parts of pion's example bandwidth-estimation-from-disk: GCC with its pacer, transport-wide feedback, reports
// and answers to NACK.
func (s *session) api() (*webrtc.API, error) {
	setup, clock := s.program.setup, s.program.clock
	media := &webrtc.MediaEngine{}
	for _, codec := range []webrtc.RTPCodecParameters{h264(), again()} {
		if err := media.RegisterCodec(codec, webrtc.RTPCodecTypeVideo); err != nil {
			return nil, err
		}
	}
	for _, uri := range []string{markURI, captureURI} {
		capability := webrtc.RTPHeaderExtensionCapability{URI: uri}
		if err := media.RegisterHeaderExtension(capability, webrtc.RTPCodecTypeVideo); err != nil {
			return nil, err
		}
	}
	s.pacer = &pacer{LeakyBucketPacer: gcc.NewLeakyBucketPacer(setup.StartBps), clock: clock}
	control, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		return gcc.NewSendSideBWE(gcc.SendSideBWEInitialBitrate(setup.StartBps),
			gcc.SendSideBWEMaxBitrate(setup.MaxBps), gcc.SendSideBWEPacer(s.pacer))
	})
	if err != nil {
		return nil, err
	}
	control.OnNewPeerConnection(func(_ string, estimator cc.BandwidthEstimator) { s.estimator = estimator })
	// A packet passes them from the last to the first.
	registry := &interceptor.Registry{}
	registry.Add(s.leaving)
	registry.Add(control)
	if err := webrtc.ConfigureTWCCHeaderExtensionSender(media, registry); err != nil {
		return nil, err
	}
	if err := webrtc.RegisterDefaultInterceptors(media, registry); err != nil {
		return nil, err
	}
	system, err := stdnet.NewNet()
	if err != nil {
		return nil, err
	}
	s.wire = &wire{Net: system}
	return webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(s.settings())), nil
}

func h264() webrtc.RTPCodecParameters {
	return webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType:     webrtc.MimeTypeH264,
			ClockRate:    90_000,
			SDPFmtpLine:  "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
			RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}, {Type: "ccm", Parameter: "fir"}},
		},
		PayloadType: 102,
	}
}

// again is of packets that are sent again.
func again() webrtc.RTPCodecParameters {
	capability := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeRTX, ClockRate: 90_000, SDPFmtpLine: "apt=102"}
	return webrtc.RTPCodecParameters{RTPCodecCapability: capability, PayloadType: 103}
}

func (s *session) settings() webrtc.SettingEngine {
	ours := map[string]bool{}
	for _, address := range s.program.setup.Addresses {
		if ip := net.ParseIP(address); ip != nil {
			ours[ip.String()] = true
		}
	}
	settings := webrtc.SettingEngine{}
	settings.SetNet(s.wire)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetIPFilter(func(ip net.IP) bool { return ours[ip.String()] })
	return settings
}

func (s *session) negotiate(offer string) (*answered, error) {
	var err error
	if s.track, err = webrtc.NewTrackLocalStaticRTP(h264().RTPCodecCapability, "video", "suiro"); err != nil {
		return nil, err
	}
	if s.sender, err = s.peer.AddTrack(s.track); err != nil {
		return nil, err
	}
	s.peer.OnConnectionStateChange(s.onState)
	remote := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := s.peer.SetRemoteDescription(remote); err != nil {
		return nil, err
	}
	answer, err := s.peer.CreateAnswer(nil)
	if err != nil {
		return nil, err
	}
	gathered := webrtc.GatheringCompletePromise(s.peer)
	if err := s.peer.SetLocalDescription(answer); err != nil {
		return nil, err
	}
	<-gathered
	return s.agreed(s.peer.LocalDescription().SDP)
}

// agreed is the answer, and what both ends agreed on.
func (s *session) agreed(description string) (*answered, error) {
	parameters := s.sender.GetParameters()
	if !strings.Contains(description, "a=sendonly") || len(parameters.Codecs) == 0 {
		return nil, errors.New("expected video in H.264 that is received (a=recvonly)")
	}
	codec := parameters.Codecs[0]
	answer := &answered{Said: "answer", Session: s.number, Answer: description, Candidates: []string{}}
	_, name, _ := strings.Cut(codec.MimeType, "/")
	answer.Codec = fmt.Sprintf("%s/%d %s", name, codec.ClockRate, codec.SDPFmtpLine)
	answer.PayloadTypes = strconv.Itoa(int(codec.PayloadType))
	for _, other := range parameters.Codecs[1:] {
		if strings.EqualFold(other.MimeType, webrtc.MimeTypeRTX) {
			answer.PayloadTypes += " " + strconv.Itoa(int(other.PayloadType))
		}
	}
	var feedback, extensions []string
	for _, one := range codec.RTCPFeedback {
		name := one.Type
		if one.Parameter != "" {
			name = one.Parameter
		}
		feedback = append(feedback, name)
	}
	for _, one := range parameters.HeaderExtensions {
		extensions = append(extensions, one.URI)
		switch one.URI {
		case markURI:
			s.mark = uint8(one.ID)
		case captureURI:
			s.capture = uint8(one.ID)
		}
	}
	answer.Feedback, answer.Extensions = strings.Join(feedback, " "), strings.Join(extensions, " ")
	if !strings.Contains(answer.Extensions, twccURI) {
		return nil, errors.New("expected the header extension of transport-wide feedback, without which GCC hears nothing")
	}
	for _, line := range strings.Split(description, "\n") {
		// RFC 8839 §5.1: foundation, component, transport, priority, address, port.
		fields := strings.Fields(line)
		if len(fields) > 5 && strings.HasPrefix(line, "a=candidate:") && fields[1] == "1" {
			answer.Candidates = append(answer.Candidates, net.JoinHostPort(fields[4], fields[5]))
		}
	}
	// RFC 3550 §5.1: from anywhere, and far enough from the first wrap for SRTP (RFC 3711 §3.3.1).
	s.sequence = uint16(rand.Intn(1 << 15))
	return answer, nil
}

func (s *session) candidate(text string) {
	// What cannot be used is passed over (RFC 9725 §4.3.2).
	_ = s.peer.AddICECandidate(webrtc.ICECandidateInit{Candidate: text})
}

func (s *session) isConnected() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.connected
}

func (s *session) onState(state webrtc.PeerConnectionState) {
	switch state {
	case webrtc.PeerConnectionStateConnected:
		s.lock.Lock()
		again := s.connected
		s.connected = true
		s.lock.Unlock()
		if !again {
			s.program.output.say(connected{Said: "connected", Session: s.number, TNs: s.program.clock.now()})
			go s.watch()
		}
	case webrtc.PeerConnectionStateFailed:
		s.end("consent")
	case webrtc.PeerConnectionStateClosed:
		s.end("closed")
	}
}

// end ends the session, of which the first reason counts.
func (s *session) end(why string) {
	s.over.Do(func() {
		close(s.done)
		s.program.forget(s.number)
		s.program.output.say(ended{Said: "ended", Session: s.number, TNs: s.program.clock.now(), Why: why})
		// pion may wait for who calls this.
		go func() { _ = s.peer.Close() }()
	})
}

// close ends the session because the program ends: nobody hears of it.
func (s *session) close() {
	s.over.Do(func() {
		close(s.done)
		_ = s.peer.Close()
	})
}

// watch reports the rate and statistics until the session is over.
func (s *session) watch() {
	ticker := time.NewTicker(rateEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		bytes, waited := s.pacer.queue()
		target := s.estimator.GetTargetBitrate()
		if n%statisticsEvery == 0 {
			s.program.output.say(s.statistics(target, bytes, waited))
		}
		s.program.output.say(rate{Said: "rate", Session: s.number, TargetBps: target, QueueBytes: bytes})
	}
}

func (s *session) statistics(target, bytes int, waited int64) statistics {
	now := s.program.clock.now()
	it := s.feedback.take(now)
	it.Said, it.Session, it.TNs, it.TargetBps = "statistics", s.number, now, target
	it.SentBytes, it.ReceivedBytes = s.wire.sent.Swap(0), s.wire.received.Swap(0)
	it.QueueBytes, it.QueueNs = bytes, waited
	it.FirstPacketNs, it.Retransmissions = s.leaving.take()
	s.lock.Lock()
	it.LeftOut, s.leftOut = s.leftOut, 0
	s.lock.Unlock()
	checks := s.sender.Transport().ICETransport()
	pair, err := checks.GetSelectedCandidatePair()
	if err == nil && pair != nil {
		local, remote := place(pair.Local), place(pair.Remote)
		it.Local, it.Remote = &local, &remote
	}
	// Before the first report of RTCP.
	if known, ok := checks.GetSelectedCandidatePairStats(); ok && it.RttNs == nil && known.CurrentRoundTripTime > 0 {
		rtt := int64(known.CurrentRoundTripTime * 1e9)
		it.RttNs = &rtt
	}
	return it
}

func place(candidate *webrtc.ICECandidate) string {
	return net.JoinHostPort(candidate.Address, strconv.Itoa(int(candidate.Port)))
}

// send writes a frame in packets to the pacer.
func (s *session) send(frame *frame, payloads [][]byte) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.connected {
		return
	}
	if !s.keyed && !frame.Key {
		if s.behind {
			s.leftOut++
		}
		return
	}
	if s.pacer.isFull() {
		s.leftOut++
		s.keyed, s.behind = false, true
		s.program.output.say(keyFrame{Said: "key_frame", Session: s.number})
		return
	}
	s.keyed, s.behind = true, false
	s.leaving.comes(frame.Number, frame.CapturedNs, frame.CapturedUnixNs)
	for index, payload := range payloads {
		packet := &rtp.Packet{Header: rtp.Header{
			Version:        2,
			Marker:         index == len(payloads)-1,
			SequenceNumber: s.sequence,
			Timestamp:      frame.Timestamp,
		}, Payload: payload}
		s.sequence++
		if index == 0 {
			s.stamp(&packet.Header, frame)
		}
		// It fails only once the connection is closed, of which onState hears.
		_ = s.track.WriteRTP(packet)
	}
}

// stamp puts a frame's mark and capture time into its first packet.
func (s *session) stamp(header *rtp.Header, frame *frame) {
	if s.mark != 0 {
		mark := binary.BigEndian.AppendUint32(nil, frame.Number)
		mark = binary.BigEndian.AppendUint32(append(mark, frame.References), frame.RateBps)
		_ = header.SetExtension(s.mark, binary.BigEndian.AppendUint16(mark, waitedLong))
	}
	if s.capture != 0 {
		_ = header.SetExtension(s.capture, binary.BigEndian.AppendUint64(nil, ntp(frame.CapturedUnixNs)))
	}
}
