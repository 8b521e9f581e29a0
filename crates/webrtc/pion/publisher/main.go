// A WebRTC publisher by pion, for scenarios: it sends the frames that an endpoint of suiro encodes, by pion's congestion
// control (GCC) and pacer, and reports the rate that the encoder is to follow. The endpoint has the camera, the encoder and
// the server of WHEP. format.go describes the messages on standard input and output.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

// Sessions that are open at most.
const sessionsMax = 64

var errFull = fmt.Errorf("%d sessions are open already", sessionsMax)

// payloadMax is the most that pion's own tracks put into a packet: 1200 bytes without the header of RTP.
const payloadMax = 1200 - 12

// program has the sessions, by their numbers.
type program struct {
	output    *output
	setup     setup
	clock     clock
	payloader rtp.Payloader

	lock     sync.Mutex
	sessions map[uint64]*session
}

func main() {
	if err := run(os.Stdin, newOutput(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run obeys until its input ends. What is no order ends it with an error.
func run(from io.Reader, to *output) error {
	to.say(ready{Said: "ready", Format: formatVersion, Versions: versions()})
	orders := newOrders(from)
	first, err := orders.next()
	if err == io.EOF {
		return to.close()
	}
	if err != nil {
		return err
	}
	if first.Setup == nil {
		return fmt.Errorf("order `%s`: expected `set` first", first.Do)
	}
	program := &program{
		output:    to,
		setup:     *first.Setup,
		clock:     clock{epoch: first.Setup.EpochMonotonicNs},
		payloader: &codecs.H264Payloader{},
		sessions:  map[uint64]*session{},
	}
	for {
		order, err := orders.next()
		if err == io.EOF {
			program.finish()
			return to.close()
		}
		if err != nil {
			return err
		}
		if err := program.obey(order); err != nil {
			return err
		}
	}
}

func (p *program) obey(order *order) error {
	switch order.Do {
	case "answer":
		// Frames of other sessions do not wait for it.
		go p.answer(order.Session, order.Offer)
	case "candidate":
		if session := p.session(order.Session); session != nil {
			session.candidate(order.Candidate)
		}
	case "close":
		if session := p.session(order.Session); session != nil {
			session.end("deleted")
		}
	case "frame":
		p.send(order.Frame)
	default:
		return fmt.Errorf("order `%s`: not expected here", order.Do)
	}
	return nil
}

func (p *program) session(number uint64) *session {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.sessions[number]
}

// all are the sessions that are open.
func (p *program) all() []*session {
	p.lock.Lock()
	defer p.lock.Unlock()
	all := make([]*session, 0, len(p.sessions))
	for _, session := range p.sessions {
		all = append(all, session)
	}
	return all
}

func (p *program) answer(number uint64, offer string) {
	if err := p.open(number, offer); err != nil {
		busy := errors.Is(err, errFull)
		reason := err.Error()
		if len(reason) > reasonMax {
			reason = strings.ToValidUTF8(reason[:reasonMax], "") + "…"
		}
		p.output.say(refused{Said: "refused", Session: number, Reason: reason, Busy: busy})
	}
}

func (p *program) open(number uint64, offer string) error {
	if len(p.all()) >= sessionsMax {
		return errFull
	}
	session, answered, err := open(p, number, offer)
	if err != nil {
		return err
	}
	if len(answered.Answer) > answerMax {
		session.close()
		return fmt.Errorf("the answer has more than %d bytes", answerMax)
	}
	p.lock.Lock()
	p.sessions[number] = session
	p.lock.Unlock()
	p.output.say(answered)
	return nil
}

func (p *program) forget(number uint64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.sessions, number)
}

func (p *program) send(frame *frame) {
	payloads := p.payloader.Payload(payloadMax, frame.data)
	if len(payloads) == 0 {
		return
	}
	for _, session := range p.all() {
		session.send(frame, payloads)
	}
}

func (p *program) finish() {
	for _, session := range p.all() {
		session.close()
	}
}
