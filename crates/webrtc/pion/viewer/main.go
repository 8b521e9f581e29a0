// A WHEP viewer by pion, for the tests of interoperation: it asks a publisher for its video, counts what comes for a while,
// and prints it as JSON.
//
//	whep-pion URL SECONDS [TOKEN]
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
)

type counts struct {
	Codec    string `json:"codec"`
	Packets  int    `json:"packets"`
	Frames   int    `json:"frames"`
	KeyUnits int    `json:"key_units"`
	Missing  int    `json:"missing"`
	Again    int    `json:"again"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 3 {
		return fmt.Errorf("usage: whep-pion URL SECONDS [TOKEN]")
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		return err
	}
	token := ""
	if len(os.Args) > 3 {
		token = os.Args[3]
	}
	peer, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return err
	}
	defer peer.Close()
	direction := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	if _, err := peer.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, direction); err != nil {
		return err
	}
	var lock sync.Mutex
	var seen counts
	peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		pli := &rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}
		_ = peer.WriteRTCP([]rtcp.Packet{pli})
		// By numbers that do not wrap. A sender may fill probes with packets that it has sent before.
		came := map[int64]bool{}
		var first, highest int64
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			lock.Lock()
			seen.Codec = track.Codec().MimeType
			number := highest + int64(int16(packet.SequenceNumber-uint16(highest)))
			if seen.Packets == 0 {
				number = int64(packet.SequenceNumber)
				first, highest = number, number
			}
			seen.Packets++
			if came[number] {
				seen.Again++
				lock.Unlock()
				continue
			}
			came[number] = true
			first, highest = min(first, number), max(highest, number)
			seen.Missing = int(highest-first) + 1 - len(came)
			if packet.Marker {
				seen.Frames++
			}
			seen.KeyUnits += keys(packet.Payload)
			lock.Unlock()
		}
	})
	location, err := offer(peer, os.Args[1], token)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	if err := end(location, token); err != nil {
		return err
	}
	lock.Lock()
	defer lock.Unlock()
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// keys is how many slices of key frames begin in a payload (RFC 6184 §5.4, §5.7, §5.8): NAL units of type 5.
func keys(payload []byte) int {
	if len(payload) < 2 {
		return 0
	}
	switch kind := payload[0] & 0x1f; {
	case kind == 5:
		return 1
	case kind == 28 && payload[1]&0x9f == 0x85:
		return 1
	case kind == 24:
		found := 0
		for at := 1; at+2 < len(payload); {
			size := int(payload[at])<<8 | int(payload[at+1])
			if payload[at+2]&0x1f == 5 {
				found++
			}
			at += 2 + size
		}
		return found
	}
	return 0
}

func offer(peer *webrtc.PeerConnection, resource, token string) (string, error) {
	description, err := peer.CreateOffer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(description); err != nil {
		return "", err
	}
	<-gathered
	response, err := ask(http.MethodPost, resource, token, peer.LocalDescription().SDP)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("expected status 201, found %d: %s", response.StatusCode, answer)
	}
	base, err := url.Parse(resource)
	if err != nil {
		return "", err
	}
	session, err := base.Parse(response.Header.Get("Location"))
	if err != nil {
		return "", err
	}
	accepted := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(answer)}
	return session.String(), peer.SetRemoteDescription(accepted)
}

func end(session, token string) error {
	response, err := ask(http.MethodDelete, session, token, "")
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("expected status 200 to DELETE, found %d", response.StatusCode)
	}
	return nil
}

func ask(method, resource, token, body string) (*http.Response, error) {
	request, err := http.NewRequest(method, resource, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/sdp")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return http.DefaultClient.Do(request)
}
