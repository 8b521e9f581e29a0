package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
)

// The format of both directions: a line of JSON for each message. An order to send a frame is followed by the frame's bytes.
// crates/webrtc/src/pion/message.rs has the other end.
//
//	set          first: addresses, rates, and CLOCK_MONOTONIC at the trial's epoch, from which all t_ns count
//	answer       an offer that is to be answered, in a session of that number
//	candidate    a candidate of the viewer
//	close        the session is to end
//	frame        a frame, for all sessions
//
// The other way: ready, answer, refused, connected, rate, statistics, key_frame, ended.
const (
	formatVersion = 2
	// An offer has 64 KiB at most, and JSON writes six bytes for some of its characters.
	lineMax = 512 << 10
	// So has an answer. A reason is for people.
	answerMax = 64 << 10
	reasonMax = 300
	frameMax  = 4 << 20
	// Messages that wait to be read at most.
	saidMax = 4096
)

type setup struct {
	Addresses        []string `json:"addresses"`
	StartBps         int      `json:"start_bps"`
	MaxBps           int      `json:"max_bps"`
	EpochMonotonicNs int64    `json:"epoch_monotonic_ns"`
}

type frame struct {
	// The source frame's number, how many frames before it the one is that it needs, and its encoder's bit rate.
	Number     uint32 `json:"number"`
	References uint8  `json:"references"`
	RateBps    uint32 `json:"rate_bps"`
	Key        bool   `json:"key"`
	// When it was captured, since the epoch and since 1970, and as RTP counts.
	CapturedNs     int64  `json:"captured_ns"`
	CapturedUnixNs uint64 `json:"captured_unix_ns"`
	Timestamp      uint32 `json:"timestamp"`
	Bytes          int    `json:"bytes"`
	data           []byte
}

type order struct {
	Do        string `json:"do"`
	Session   uint64 `json:"session"`
	Offer     string `json:"offer"`
	Candidate string `json:"candidate"`
	Setup     *setup `json:"setup"`
	Frame     *frame `json:"frame"`
}

type ready struct {
	Said     string            `json:"said"`
	Format   int               `json:"format"`
	Versions map[string]string `json:"versions"`
}

type answered struct {
	Said         string   `json:"said"`
	Session      uint64   `json:"session"`
	Answer       string   `json:"answer"`
	Candidates   []string `json:"candidates"`
	Codec        string   `json:"codec"`
	PayloadTypes string   `json:"payload_types"`
	Feedback     string   `json:"feedback"`
	Extensions   string   `json:"extensions"`
}

type refused struct {
	Said    string `json:"said"`
	Session uint64 `json:"session"`
	Reason  string `json:"reason"`
	// Another time it might be answered.
	Busy bool `json:"busy"`
}

type connected struct {
	Said    string `json:"said"`
	Session uint64 `json:"session"`
	TNs     int64  `json:"t_ns"`
}

type ended struct {
	Said    string `json:"said"`
	Session uint64 `json:"session"`
	TNs     int64  `json:"t_ns"`
	Why     string `json:"why"`
}

type keyFrame struct {
	Said    string `json:"said"`
	Session uint64 `json:"session"`
}

// rate is what the congestion control allows, and the bytes of RTP that wait for the pacer.
type rate struct {
	Said       string `json:"said"`
	Session    uint64 `json:"session"`
	TargetBps  int    `json:"target_bps"`
	QueueBytes int    `json:"queue_bytes"`
}

// statistics are of the time since the last ones. Bytes are those of IP packets.
type statistics struct {
	Said            string   `json:"said"`
	Session         uint64   `json:"session"`
	TNs             int64    `json:"t_ns"`
	TargetBps       int      `json:"target_bps"`
	SentBytes       uint64   `json:"sent_bytes"`
	ReceivedBytes   uint64   `json:"received_bytes"`
	RttNs           *int64   `json:"rtt_ns"`
	LossRatio       *float64 `json:"loss_ratio"`
	Nacks           uint64   `json:"nacks"`
	Retransmissions uint64   `json:"retransmissions"`
	Plis            uint64   `json:"plis"`
	Firs            uint64   `json:"firs"`
	LeftOut         uint64   `json:"left_out"`
	QueueBytes      int      `json:"queue_bytes"`
	QueueNs         int64    `json:"queue_ns"`
	Local           *string  `json:"local"`
	Remote          *string  `json:"remote"`
	FirstPacketNs   *int64   `json:"first_packet_ns"`
}

// versions are those of the libraries that decide what is measured.
func versions() map[string]string {
	found := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	names := map[string]string{
		"github.com/pion/webrtc/v4":   "pion",
		"github.com/pion/interceptor": "pion interceptor",
	}
	for _, dependency := range info.Deps {
		if name, ok := names[dependency.Path]; ok {
			found[name] = strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return found
}

// orders reads what the endpoint writes.
type orders struct {
	from *bufio.Reader
}

func newOrders(from io.Reader) *orders {
	return &orders{from: bufio.NewReaderSize(from, lineMax)}
}

// next is the next order, with a frame's bytes; io.EOF between two orders is the end.
func (o *orders) next() (*order, error) {
	line, err := o.from.ReadSlice('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	case err == io.EOF:
		return nil, errors.New("an order is cut")
	case err == bufio.ErrBufferFull:
		return nil, fmt.Errorf("an order of more than %d bytes", lineMax)
	case err != nil:
		return nil, err
	}
	read := json.NewDecoder(bytes.NewReader(line))
	read.DisallowUnknownFields()
	found := &order{}
	if err := read.Decode(found); err != nil {
		return nil, fmt.Errorf("an order: %w", err)
	}
	if read.More() {
		return nil, errors.New("an order: more than one value in a line")
	}
	if (found.Do == "set") != (found.Setup != nil) || (found.Do == "frame") != (found.Frame != nil) {
		return nil, fmt.Errorf("order `%s`: its keys are those of another", found.Do)
	}
	if found.Setup != nil {
		return found, found.Setup.check()
	}
	if found.Frame == nil {
		return found, nil
	}
	if found.Frame.Bytes <= 0 || found.Frame.Bytes > frameMax {
		return nil, fmt.Errorf("a frame of %d bytes: expected 1 to %d", found.Frame.Bytes, frameMax)
	}
	found.Frame.data = make([]byte, found.Frame.Bytes)
	if _, err := io.ReadFull(o.from, found.Frame.data); err != nil {
		return nil, errors.New("a frame is cut")
	}
	return found, nil
}

func (s *setup) check() error {
	if s.StartBps <= 0 || s.MaxBps < s.StartBps {
		return fmt.Errorf("rates of %d and %d bit/s: expected the first to be positive and no more than the second",
			s.StartBps, s.MaxBps)
	}
	return nil
}

// output writes messages in order. Who sends them never waits.
type output struct {
	lines chan []byte
	done  chan error

	lock   sync.Mutex
	closed bool
}

func newOutput(to io.Writer) *output {
	out := &output{lines: make(chan []byte, saidMax), done: make(chan error, 1)}
	go func() {
		for line := range out.lines {
			if _, err := to.Write(line); err != nil {
				fmt.Fprintln(os.Stderr, "error: standard output:", err)
				os.Exit(1)
			}
		}
		out.done <- nil
	}()
	return out
}

func (o *output) say(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: a message:", err)
		os.Exit(1)
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.closed {
		return
	}
	select {
	case o.lines <- append(line, '\n'):
	default:
		fmt.Fprintln(os.Stderr, "error: nobody reads standard output")
		os.Exit(1)
	}
}

// close waits until all is written. Whatever is said later is lost.
func (o *output) close() error {
	o.lock.Lock()
	o.closed = true
	close(o.lines)
	o.lock.Unlock()
	return <-o.done
}
