// A publisher and a viewer by moqtransport of Eyevinn, for the tests of interoperation, in draft-14 of moq-transport over QUIC.
//
//	moqt-eyevinn publish ADDRESS NAMESPACE CERTIFICATE < VIDEO
//	moqt-eyevinn view ADDRESS NAMESPACE CERTIFICATE FRAMES > VIDEO
//
// VIDEO is H.264 as a byte stream with access unit delimiters; what is published comes as fast as it is read. CERTIFICATE is the
// one that is trusted, in DER. The viewer ends after FRAMES objects, writes those that
// follow each other from a key frame on, and prints what it counted on standard error, as JSON.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Eyevinn/moqtransport"
	"github.com/Eyevinn/moqtransport/quicmoq"
	"github.com/quic-go/quic-go"
)

const (
	catalogTrack = "catalog.json"
	videoTrack   = "video"
	catalog      = `{"video":{"renditions":{"video":{"codec":"avc3.42e01e","container":{"kind":"legacy"}}}}}`
	// The first byte of a NAL unit that begins an access unit.
	delimiter = 9
	key       = 5
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 4 && args[0] == "publish" {
		return publish(args[1], strings.Split(args[2], "/"), args[3])
	}
	if len(args) == 5 && args[0] == "view" {
		frames, err := strconv.Atoi(args[4])
		if err != nil {
			return err
		}
		return view(args[1], strings.Split(args[2], "/"), args[3], frames)
	}
	return errors.New("usage: moqt-eyevinn publish|view ADDRESS NAMESPACE CERTIFICATE [FRAMES]")
}

// connect sets a session up.
func connect(address, certificate string, session *moqtransport.Session) error {
	der, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	trusted, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	security := &tls.Config{RootCAs: roots, NextProtos: []string{"moq-00"}}
	conn, err := quic.DialAddr(ctx, address, security, &quic.Config{EnableDatagrams: true})
	if err != nil {
		return err
	}
	session.InitialMaxRequestID = 100
	return session.RunContext(ctx, quicmoq.NewClient(conn))
}

// publisher sends each frame to those who have subscribed.
type publisher struct {
	lock    sync.Mutex
	writers []*moqtransport.SubscribeResponseWriter
	open    []*moqtransport.Subgroup
	group   uint64
	object  uint64
}

func publish(address string, namespace []string, certificate string) error {
	p := &publisher{}
	session := &moqtransport.Session{
		Handler:          moqtransport.HandlerFunc(func(moqtransport.ResponseWriter, *moqtransport.Message) {}),
		SubscribeHandler: moqtransport.SubscribeHandlerFunc(p.subscribed),
	}
	if err := connect(address, certificate, session); err != nil {
		return err
	}
	if err := session.Announce(context.Background(), namespace); err != nil {
		return err
	}
	return pictures(bufio.NewReaderSize(os.Stdin, 1<<20), p.send)
}

func (p *publisher) subscribed(w *moqtransport.SubscribeResponseWriter, m *moqtransport.SubscribeMessage) {
	switch m.Track {
	case catalogTrack:
		if err := w.Accept(); err != nil {
			return
		}
		group, err := w.OpenSubgroup(0, 0, 0)
		if err != nil {
			return
		}
		_, _ = group.WriteObject(0, []byte(catalog))
		_ = group.Close()
	case videoTrack:
		if err := w.Accept(); err != nil {
			return
		}
		p.lock.Lock()
		defer p.lock.Unlock()
		p.writers = append(p.writers, w)
	default:
		_ = w.Reject(moqtransport.ErrorCodeSubscribeTrackDoesNotExist, "no such track")
	}
}

// send makes a group of each group of pictures.
func (p *publisher) send(picture []byte, isKey bool) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if isKey {
		for _, group := range p.open {
			_ = group.Close()
		}
		p.open, p.object = nil, 0
		p.group++
		for _, w := range p.writers {
			group, err := w.OpenSubgroup(p.group, 0, 127)
			if err != nil {
				return err
			}
			p.open = append(p.open, group)
		}
	}
	// RFC 9000 section 16: a varint of eight bytes begins with the bits 11.
	at := uint64(time.Now().UnixMicro()) | 0b11<<62
	object := append(binary.BigEndian.AppendUint64(nil, at), picture...)
	for _, group := range p.open {
		if _, err := group.WriteObject(p.object, object); err != nil {
			return err
		}
	}
	p.object++
	return nil
}

// Cuts a byte stream before each access unit delimiter.
func pictures(from io.Reader, each func(picture []byte, isKey bool) error) error {
	var kept []byte
	chunk := make([]byte, 1<<16)
	for {
		count, err := from.Read(chunk)
		kept = append(kept, chunk[:count]...)
		for {
			next := bytes.Index(kept[min(len(kept), 4):], []byte{0, 0, 0, 1, delimiter})
			if next < 0 {
				break
			}
			if err := each(kept[:next+4], types(kept[:next+4])[key]); err != nil {
				return err
			}
			kept = kept[next+4:]
		}
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// types returns which types of NAL units there are.
func types(picture []byte) map[byte]bool {
	found := map[byte]bool{}
	for at := 0; at+3 < len(picture); at++ {
		if picture[at] == 0 && picture[at+1] == 0 && picture[at+2] == 1 {
			found[picture[at+3]&0x1f] = true
		}
	}
	return found
}

type counts struct {
	Renditions []string `json:"renditions"`
	Objects    int      `json:"objects"`
	Written    int      `json:"written"`
	Keys       int      `json:"keys"`
}

func view(address string, namespace []string, certificate string, frames int) error {
	announced := make(chan struct{}, 1)
	session := &moqtransport.Session{
		Handler: moqtransport.HandlerFunc(func(w moqtransport.ResponseWriter, m *moqtransport.Message) {
			if m.Method != moqtransport.MessageAnnounce {
				return
			}
			_ = w.Accept()
			if slices.Equal(m.Namespace, namespace) {
				select {
				case announced <- struct{}{}:
				default:
				}
			}
		}),
	}
	if err := connect(address, certificate, session); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := session.SubscribeAnnouncements(ctx, namespace[:1]); err != nil {
		return fmt.Errorf("asking for announcements: %w", err)
	}
	select {
	case <-announced:
	case <-ctx.Done():
		return errors.New("the broadcast was not announced")
	}
	var seen counts
	if err := renditions(ctx, session, namespace, &seen); err != nil {
		return fmt.Errorf("the catalog: %w", err)
	}
	track, err := session.Subscribe(ctx, namespace, videoTrack)
	if err != nil {
		return fmt.Errorf("subscribing to the video: %w", err)
	}
	var objects []*moqtransport.Object
	for len(objects) < frames {
		object, err := track.ReadObject(ctx)
		if err != nil {
			return fmt.Errorf("the video, after %d objects: %w", len(objects), err)
		}
		if len(object.Payload) < 8 || object.Payload[0]>>6 != 3 {
			return errors.New("an object without a time of eight bytes")
		}
		objects = append(objects, object)
	}
	if err := write(objects, &seen); err != nil {
		return err
	}
	return json.NewEncoder(os.Stderr).Encode(seen)
}

// write puts objects in order, as streams overtake each other, and writes those from the first key frame to the first gap.
func write(objects []*moqtransport.Object, seen *counts) error {
	seen.Objects = len(objects)
	slices.SortFunc(objects, func(a, b *moqtransport.Object) int {
		return cmp.Or(cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.ObjectID, b.ObjectID))
	})
	var last *moqtransport.Object
	for _, object := range objects {
		picture := object.Payload[8:]
		isKey := types(picture)[key]
		if last == nil && !isKey {
			continue
		}
		if last != nil && !follows(last, object) {
			break
		}
		last = object
		if isKey {
			seen.Keys++
		}
		if _, err := os.Stdout.Write(picture); err != nil {
			return err
		}
		seen.Written++
	}
	return nil
}

func follows(before, after *moqtransport.Object) bool {
	if before.GroupID == after.GroupID {
		return after.ObjectID == before.ObjectID+1
	}
	return after.GroupID == before.GroupID+1 && after.ObjectID == 0
}

func renditions(ctx context.Context, session *moqtransport.Session, namespace []string, seen *counts) error {
	track, err := session.Subscribe(ctx, namespace, catalogTrack)
	if err != nil {
		return err
	}
	object, err := track.ReadObject(ctx)
	if err != nil {
		return err
	}
	var read struct {
		Video struct {
			Renditions map[string]struct {
				Codec string `json:"codec"`
			} `json:"renditions"`
		} `json:"video"`
	}
	if err := json.Unmarshal(object.Payload, &read); err != nil {
		return err
	}
	for name, rendition := range read.Video.Renditions {
		seen.Renditions = append(seen.Renditions, name+" "+rendition.Codec)
	}
	return nil
}
