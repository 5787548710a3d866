package sessionlink

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session/sessiontest"
)

var servers *sandboxtest.Endpoints

// Each test has a topic of its own in the one sandbox.
func TestMain(m *testing.M) {
	var err error
	servers, err = sandboxtest.Start(sandboxtest.Topics(append(sessiontest.Topics(), "carried", "credit", "claim", "lanes", "doubted", "full", "requests", "unanswered", "coming", "ending", "unsettled-received", "unsettled-come", "unsettled-withdrawn", "slowdial", "far", "answers", "silent", "lateanswers", "pairs", "impatient", "nocredit", "answering", "endsbusy", "channels", "refused-message")...))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(servers.Stop(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// config is a place as this adapter has it.
func config(place sessiontest.Place) (Config, error) {
	access, err := namespace.Read(place.ConnectionString)
	access.WebSockets, access.TLS = place.WebSockets, place.TLS
	return Config{Access: access, Topic: place.Topic, Subscription: place.Subscription, Connections: 2, Linger: place.Linger}, err
}

func TestSubscription_IsAsTheEngineAsks(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, servers, func(place sessiontest.Place, log zerolog.Logger) (sessiontest.Sessions, error) {
		cfg, err := config(place)
		return New(cfg, log), err
	})
}
