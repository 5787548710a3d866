package servicebus

import (
	"errors"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/namespace"
)

func TestDial_AClientConnectsOnceInItsLife(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ended := 0
	s := &singleUse{access: &namespace.Access{Emulator: true}, heard: func() {}, ended: func() { ended++ }}
	connect := func(host string) (net.Conn, error) {
		s.access.Host = host
		return s.connect(t.Context(), azservicebus.NewWebSocketConnArgs{})
	}
	if _, err := connect("127.0.0.1:0"); err == nil || errors.Is(err, errUsedUp{}) {
		t.Fatalf("connect to nobody: got %v, want that nobody is there", err)
	}
	conn, err := connect(listener.Addr().String())
	if err != nil {
		t.Fatalf("connect after an attempt in vain: %v", err)
	}
	if ended != 0 {
		t.Error("the connection counts as ended before it is closed")
	}
	if err := conn.Close(); err != nil || ended != 1 {
		t.Errorf("close: got %v, and the end told of %d times, want once", err, ended)
	}
	if _, err := connect(listener.Addr().String()); !errors.Is(err, errUsedUp{}) {
		t.Errorf("connect again: got %v, want %v", err, errUsedUp{})
	}
}

func TestDial_ASignOfLifeIsNoAnswer(t *testing.T) {
	t.Parallel()
	peer, conn := net.Pipe()
	defer peer.Close()
	heard := 0
	w := watched{conn, func() { heard++ }, func() {}}
	defer w.Close()
	for _, tt := range []struct {
		frame []byte
		want  int
	}{
		{[]byte{0, 0, 0, 8, 2, 0, 0, 0}, 0},
		{[]byte{0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x18, 0x45}, 1},
	} {
		go func() { _, _ = peer.Write(tt.frame) }()
		if _, err := w.Read(make([]byte, 100)); err != nil || heard != tt.want {
			t.Errorf("after %x: heard %d times and %v, want %d", tt.frame, heard, err, tt.want)
		}
	}
}
