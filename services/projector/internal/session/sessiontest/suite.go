package sessiontest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// Place is where an adapter takes its sessions.
type Place struct {
	ConnectionString    string
	WebSockets          bool
	TLS                 *tls.Config
	Topic, Subscription string
	// Linger is how long a receive waits for another message.
	Linger time.Duration
}

// Sessions is an adapter at a place.
type Sessions interface {
	session.Acceptor
	Close(ctx context.Context) error
}

// Open makes an adapter. It makes no round trip.
type Open func(place Place, log zerolog.Logger) (Sessions, error)

// suite is an adapter and the servers that it is tried with.
type suite struct {
	open    Open
	servers *sandboxtest.Endpoints
}

// Topics are what the servers of Run have; each with the session subscription
// projector, as sandboxtest.Topics makes it.
func Topics() []string { return slices.Sorted(maps.Keys(tests)) }

// tests are by the topic that each has for itself.
var tests = map[string]func(suite, *testing.T){
	"whole":        suite.messageComesWhole,
	"order":        suite.orderOverManyReceives,
	"ahead":        suite.askedAheadComesMeanwhile,
	"withdrawn":    suite.withdrawnComesNoMore,
	"none":         suite.noSessionIsSaidInTime,
	"given":        suite.notSettledComesAgainUncounted,
	"dead":         suite.deadLetterKeepsItsReason,
	"renew":        suite.lockIsRenewed,
	"lapsed":       suite.lapsedLockGoesToAnother,
	"lostearly":    suite.lockLostBeforeReceive,
	"lostbetween":  suite.lockLostBetweenReceiveAndSettle,
	"lostrenew":    suite.lockLostBeforeRenewal,
	"detached":     suite.linkTakenAway,
	"surplus":      suite.surplusCreditLosesNothing,
	"twice":        suite.duplicateDelivery,
	"cancel":       suite.cancelledAcceptLeavesNothing,
	"handover":     suite.releaseGivesToAnotherAtOnce,
	"busy":         suite.throttlingIsNoSilence,
	"busyrenew":    suite.throttledRenewalIsTriedAgain,
	"doubt":        suite.doubtedConnectionIsReplaced,
	"cut":          suite.cutConnectionEndsItsSessions,
	"late":         suite.lateLearnerHarmsNoOther,
	"frozen":       suite.silentConnectionIsLeft,
	"secure":       suite.sessionsByTLSAndWebSockets,
	"vanish":       suite.entityThatGoesAway,
	"token":        suite.tokenThatEnds,
	"sidebyside":   suite.manySessionsSideBySide,
	"closed":       suite.closeEndsEverything,
	"foreignparts": suite.oddMessageIsNoPanic,
	"otherbody":    suite.otherBodyIsNoData,
	"mended":       suite.undecodableThatIsTakenOutIsForgotten,
}

// Run runs the suite against an adapter.
func Run(t *testing.T, servers *sandboxtest.Endpoints, open Open) {
	s := suite{open, servers}
	for topic, test := range tests {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			test(s, t)
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		s.refusalSaysWhatAndWhere(t)
	})
}

// topic is the topic of the test that runs.
func topic(t *testing.T) string { return t.Name()[strings.LastIndexByte(t.Name(), '/')+1:] }

// at opens the adapter at the topic of the test that runs.
func (s suite) at(t *testing.T) Sessions {
	t.Helper()
	return s.at2(t, Place{ConnectionString: s.servers.ServiceBus, Topic: topic(t), Subscription: "projector"})
}

func (s suite) at2(t *testing.T, place Place) Sessions {
	t.Helper()
	place.Linger = 50 * time.Millisecond
	sessions, err := s.open(place, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if err := sessions.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sessions
}

// through opens the adapter behind a proxy.
func (s suite) through(t *testing.T) (Sessions, *sandboxtest.Proxy) {
	t.Helper()
	bus := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(s.servers.ServiceBus)[1]
	way := sandboxtest.NewProxy(t, bus)
	way.Open(t)
	return s.at2(t, Place{ConnectionString: strings.Replace(s.servers.ServiceBus, bus, way.Addr, 1), Topic: topic(t), Subscription: "projector"}), way
}

func (s suite) send(t *testing.T, messages ...contract.Message) {
	t.Helper()
	sandboxtest.Send(t, s.servers, topic(t), messages...)
}

func (s suite) path(t *testing.T) string { return topic(t) + "/Subscriptions/projector" }

func accept(t *testing.T, s Sessions, slot int, within time.Duration) (session.Receiver, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return s.Accept(ctx, slot)
}

func mustAccept(t *testing.T, s Sessions) session.Receiver {
	t.Helper()
	r, err := accept(t, s, 0, 30*time.Second)
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return r
}

// eventually accepts again and again until it works.
func eventually(t *testing.T, s Sessions) session.Receiver {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		r, err := accept(t, s, 0, 5*time.Second)
		if err == nil {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("accept: %v for a minute, want a session", err)
		}
	}
}

func receive(t *testing.T, r session.Receiver, n int) []session.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	messages, err := r.Receive(ctx, n)
	if err != nil || len(messages) != n {
		t.Fatalf("receive: got %d messages and %v, want %d", len(messages), err, n)
	}
	return messages
}

func complete(t *testing.T, r session.Receiver, messages ...session.Message) {
	t.Helper()
	for _, m := range messages {
		if err := r.Settle(t.Context(), m, session.Verdict{}); err != nil {
			t.Errorf("complete %q: %v", m.ID, err)
		}
	}
}

func release(t *testing.T, r session.Receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Errorf("give the session back: %v", err)
	}
}

func message(id, sessionID string) contract.Message {
	return contract.Message{
		ID: id, SessionID: sessionID, PartitionKey: sessionID, Subject: "Happened",
		ContentType: contract.ContentTypeJSON, ContentEncoding: "gzip", Body: []byte{0, 1, 2, 255},
		Properties: map[string]any{"text": "x", "number": int64(7), "small": int32(-1), "flag": true, "real": 1.5},
	}
}

func numbered(n int) []contract.Message {
	messages := make([]contract.Message, n)
	for i := range messages {
		messages[i] = message(fmt.Sprint(i+1), "a")
	}
	return messages
}

// ends waits until a receive on a held session ends without a message, as it
// must once the session is lost, well before its lock would have ended by itself.
func ends(t *testing.T, r session.Receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	if messages, err := r.Receive(ctx, 10); len(messages) > 0 || ctx.Err() != nil {
		t.Errorf("receive from a lost session: got %d messages and %v, want none at once", len(messages), err)
	}
}

func read(t *testing.T, from io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
