package speed

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALaterAnswerIsWholeAndInOrder(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	far, err := newLatency(server.Addr().String(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- far.run(ctx) }()
	go func() {
		connection, err := server.Accept()
		if err == nil {
			_, err = io.Copy(connection, connection) // an echo
		}
		ended <- err
	}()
	client, err := net.Dial("tcp", far.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() { _, _ = client.Write(want) }()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes back, %v, want those that were sent", len(got), err)
	}
	cancel()
	for range 2 {
		<-ended
	}
	_ = client.Close()
}

func TestFiguresStandBesideTheirLimits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := show(&out, Config{Events: 10}, []Figure{
		{driverFigure, 1000},
		{sdkFigure, 500},
		{"publisher", 400},
		{plainFigure, 100},
		{"publisher" + late("-late"), 300},
		{plainFigure + late("-late"), 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"80 %", "4.0", "30.0"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("the table does not say %s:\n%s", says, &out)
		}
	}
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--events", "0"}, {"--aggregates", "0"}, {"more"}, {"--unknown"}} {
		if _, err := Parse(args, io.Discard); err == nil {
			t.Errorf("Parse takes %q", args)
		}
	}
}
