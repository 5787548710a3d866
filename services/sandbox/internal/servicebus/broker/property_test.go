package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// The model is a second, plain account of a session subscription: what every
// receiver may be given next, and what each operation must answer. A run makes
// random operations on the broker and on the model and compares. Its seed is
// the name of the subtest.

const modelDeliveries = 3

type modelState int

const (
	waiting modelState = iota
	locked
	deferred
	done
	dead
)

type modelMessage struct {
	id       string
	session  string
	seq      int64 // known from the first delivery on
	state    modelState
	before   modelState // of a locked one: waiting or deferred
	failed   uint32
	arrival  int
	everSeen bool
}

type modelSession struct {
	id       string
	messages []*modelMessage
	holder   *modelReceiver
	until    time.Time
}

type modelReceiver struct {
	receiver *Receiver
	session  *modelSession
	tokens   map[uuid.UUID]*modelMessage
}

type model struct {
	t        *testing.T
	rng      *rand.Rand
	b        *Broker
	journal  *memoryJournal
	stop     func()
	sessions []*modelSession
	all      []*modelMessage
	gone     []uuid.UUID // tokens that must be refused
}

func TestProperty_SessionsBehaveAsTheModelSays(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, seed)
				for range 400 {
					m.step()
				}
				m.finish()
			})
		})
	}
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), journal: &memoryJournal{}}
	for i := range 6 {
		m.sessions = append(m.sessions, &modelSession{id: fmt.Sprint("s", i)})
	}
	m.b, m.stop = start(t, Config{})
	m.b.Keep(m.journal)
	makeTopic(t, m.b, entity.TopicProperties{EnablePartitioning: seed%2 == 0}, entity.SubscriptionProperties{RequiresSession: true, MaxDeliveryCount: modelDeliveries})
	_, err := m.b.CreateSubscription("changes", "observer", entity.SubscriptionProperties{})
	must(t, err)
	return m
}

func (m *model) step() {
	m.expire()
	m.t.Helper()
	switch n := m.rng.IntN(100); {
	case n < 25:
		m.send()
	case n < 40:
		m.acceptNext()
	case n < 45:
		m.acceptNamed()
	case n < 60:
		m.withReceiver(m.receive)
	case n < 80:
		m.withReceiver(m.settle)
	case n < 84:
		m.withReceiver(m.receiveDeferred)
	case n < 88:
		m.withReceiver(m.renew)
	case n < 91:
		m.withReceiver(m.close)
	case n < 92:
		m.withReceiver(m.lose)
	case n < 94:
		m.settleStale()
	case n < 95:
		m.crash()
	case n < 96:
		must(m.t, m.b.compact())
	default:
		time.Sleep(time.Duration(m.rng.IntN(20)) * time.Second)
		synctest.Wait()
	}
}

// expire is what time has done since the last step.
func (m *model) expire() {
	for _, s := range m.sessions {
		if s.holder != nil && !time.Now().Before(s.until) {
			m.free(s, true)
		}
	}
}

// free ends a hold.
func (m *model) free(s *modelSession, count bool) {
	for token := range s.holder.tokens {
		m.gone = append(m.gone, token)
	}
	for _, x := range s.messages {
		if x.state == locked {
			m.putBack(x, count)
		}
	}
	s.holder = nil
}

func (m *model) putBack(x *modelMessage, count bool) {
	x.state = x.before
	if count {
		x.failed++
		if x.failed >= modelDeliveries {
			x.state = dead
		}
	}
}

func (m *model) send() {
	s := m.sessions[m.rng.IntN(len(m.sessions))]
	var batch []*entity.Message
	for range 1 + m.rng.IntN(4) {
		x := &modelMessage{id: fmt.Sprint("m", len(m.all)), session: s.id, arrival: len(m.all)}
		m.all = append(m.all, x)
		s.messages = append(s.messages, x)
		batch = append(batch, msg(x.id, s.id))
	}
	must(m.t, m.b.Send(m.t.Context(), "changes", batch))
}

func (s *modelSession) oldest() *modelMessage {
	for _, x := range s.messages {
		if x.state == waiting {
			return x
		}
	}
	return nil
}

func (m *model) acceptNext() {
	var want *modelSession
	for _, s := range m.sessions {
		if s.holder == nil && s.oldest() != nil && (want == nil || s.oldest().arrival < want.oldest().arrival) {
			want = s
		}
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	cancel()
	r, err := m.b.OpenReceiver(ctx, sub, ReceiverOptions{Session: &SessionFilter{Next: true}})
	if want == nil {
		if err == nil {
			m.t.Fatalf("next session: got %q, want none", r.SessionID())
		}
		return
	}
	must(m.t, err)
	if r.SessionID() != want.id {
		m.t.Fatalf("next session: got %q, want %q", r.SessionID(), want.id)
	}
	want.hold(r)
}

func (s *modelSession) hold(r *Receiver) {
	s.holder = &modelReceiver{receiver: r, session: s, tokens: map[uuid.UUID]*modelMessage{}}
	s.until = time.Now().Add(lockDuration)
}

func (m *model) acceptNamed() {
	s := m.sessions[m.rng.IntN(len(m.sessions))]
	r, err := m.b.OpenReceiver(m.t.Context(), sub, ReceiverOptions{Session: &SessionFilter{ID: s.id}})
	if s.holder != nil {
		wantCondition(m.t, err, entity.ConditionSessionCannotBeLocked)
		return
	}
	must(m.t, err)
	s.hold(r)
}

func (m *model) withReceiver(f func(*modelReceiver)) {
	var held []*modelReceiver
	for _, s := range m.sessions {
		if s.holder != nil {
			held = append(held, s.holder)
		}
	}
	if len(held) > 0 {
		f(held[m.rng.IntN(len(held))])
	}
}

func (m *model) receive(r *modelReceiver) {
	n := 1 + m.rng.IntN(4)
	var want []*modelMessage
	for _, x := range r.session.messages {
		if x.state == waiting && len(want) < n {
			want = append(want, x)
		}
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	cancel()
	ds, err := r.receiver.Receive(ctx, n)
	if len(want) == 0 {
		if err == nil {
			m.t.Fatalf("Receive of %s: got %q, want nothing", r.session.id, ids(ds))
		}
		return
	}
	must(m.t, err)
	m.given(r, ds, want)
}

// given checks deliveries against the messages they must be.
func (m *model) given(r *modelReceiver, ds []*entity.Delivery, want []*modelMessage) {
	if len(ds) != len(want) {
		m.t.Fatalf("messages of %s: got %q, want %d", r.session.id, ids(ds), len(want))
	}
	for i, d := range ds {
		x := want[i]
		if d.MessageID != x.id || d.DeliveryCount != x.failed || !d.LockedUntil.Equal(r.session.until) || x.everSeen && d.SequenceNumber != x.seq {
			m.t.Fatalf("message of %s: got %s number %d count %d until %v, want %+v until %v",
				r.session.id, d.MessageID, d.SequenceNumber, d.DeliveryCount, d.LockedUntil, x, r.session.until)
		}
		x.seq, x.everSeen = d.SequenceNumber, true
		x.before, x.state = x.state, locked
		r.tokens[d.LockToken] = x
	}
}

func (m *model) settle(r *modelReceiver) {
	token, x := m.anyToken(r)
	if x == nil {
		return
	}
	delete(r.tokens, token)
	m.gone = append(m.gone, token)
	var o entity.Outcome
	switch m.rng.IntN(8) {
	case 0:
		o = entity.Abandon{Properties: map[string]any{"n": int32(1)}}
		m.putBack(x, true)
	case 1:
		o = entity.Release{}
		m.putBack(x, false)
	case 2:
		o, x.state = entity.Defer{}, deferred
	case 3:
		o, x.state = entity.DeadLetter{Reason: "r"}, dead
	default:
		o, x.state = entity.Complete{}, done
	}
	if m.rng.IntN(2) == 0 {
		must(m.t, r.receiver.Settle(token, o))
	} else {
		must(m.t, m.b.SettleByToken(sub, token, o))
	}
}

// anyToken picks one, the same for the same seed.
func (m *model) anyToken(r *modelReceiver) (uuid.UUID, *modelMessage) {
	var found []*modelMessage
	for _, x := range r.tokens {
		found = append(found, x)
	}
	if len(found) == 0 {
		return uuid.Nil, nil
	}
	slices.SortFunc(found, func(x, y *modelMessage) int { return x.arrival - y.arrival })
	want := found[m.rng.IntN(len(found))]
	for token, x := range r.tokens {
		if x == want {
			return token, x
		}
	}
	return uuid.Nil, nil
}

func (m *model) receiveDeferred(r *modelReceiver) {
	var want []*modelMessage
	var seqs []int64
	for _, x := range r.session.messages {
		if x.state == deferred {
			want = append(want, x)
			seqs = append(seqs, x.seq)
		}
	}
	if len(want) == 0 {
		return
	}
	ds, err := r.receiver.ReceiveDeferred(seqs)
	must(m.t, err)
	m.given(r, ds, want)
}

func (m *model) renew(r *modelReceiver) {
	until, err := r.receiver.RenewSessionLock()
	must(m.t, err)
	r.session.until = time.Now().Add(lockDuration)
	if !until.Equal(r.session.until) {
		m.t.Fatalf("renewed until %v, want %v", until, r.session.until)
	}
}

func (m *model) close(r *modelReceiver) {
	r.receiver.Close()
	m.free(r.session, false)
}

func (m *model) lose(r *modelReceiver) {
	_, err := m.b.LoseSessionLocks(sub, r.session.id)
	must(m.t, err)
	m.free(r.session, false)
	_, err = r.receiver.Receive(m.t.Context(), 1)
	wantCondition(m.t, err, entity.ConditionSessionLockLost)
}

func (m *model) settleStale() {
	if len(m.gone) > 0 {
		token := m.gone[m.rng.IntN(len(m.gone))]
		wantCondition(m.t, m.b.SettleByToken(sub, token, entity.Complete{}), entity.ConditionMessageLockLost)
	}
}

// crash goes on with a broker made from what the journal has committed.
func (m *model) crash() {
	for _, s := range m.sessions {
		if s.holder != nil {
			m.free(s, false)
		}
	}
	m.gone = nil
	m.stop()
	m.b, m.stop = start(m.t, Config{})
	must(m.t, m.journal.replay(m.b.Restore))
	m.b.Keep(m.journal)
}

// finish takes everything and finds every message exactly once, in one place.
func (m *model) finish() {
	time.Sleep(time.Hour)
	synctest.Wait()
	m.expire()
	for _, s := range m.sessions {
		r := openSession(m.t, m.b, sub, s.id)
		s.hold(r)
		m.drain(s.holder)
		r.Close()
		s.holder = nil
	}
	deadLetters := map[string]bool{}
	ds, err := m.b.Peek(sub+"/$DeadLetterQueue", 0, len(m.all)+1, nil)
	must(m.t, err)
	for _, d := range ds {
		deadLetters[d.MessageID] = true
	}
	for _, x := range m.all {
		if x.state != done && x.state != dead || deadLetters[x.id] != (x.state == dead) {
			m.t.Errorf("message %s: got state %d, in the dead-letter queue %t", x.id, x.state, deadLetters[x.id])
		}
	}
	if ds, err := m.b.Peek(sub, 0, 10, nil); err != nil || len(ds) != 0 {
		m.t.Errorf("left over: got %q, %v, want nothing", ids(ds), err)
	}
	if ds, err := m.b.Peek("changes/Subscriptions/observer", 0, len(m.all)+1, nil); err != nil || len(ds) != len(m.all) {
		m.t.Errorf("observed: got %d, %v, want all %d", len(ds), err, len(m.all))
	}
	m.stop()
}

func (m *model) drain(r *modelReceiver) {
	m.receiveDeferred(r)
	for r.session.oldest() != nil {
		m.receive(r)
	}
	for token, x := range r.tokens {
		must(m.t, r.receiver.Settle(token, entity.Complete{}))
		x.state = done
	}
}

// memoryJournal keeps records in memory. A crash loses what is not committed.
type memoryJournal struct {
	mu        sync.Mutex
	records   [][]byte
	committed int
	segment   int // records before it are in snapshot
	snapshot  [][]byte
}

func (j *memoryJournal) Append(record []byte) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, slices.Clone(record))
	return int64(len(j.records))
}

func (j *memoryJournal) Commit(position int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.committed = max(j.committed, int(position))
	return nil
}

func (j *memoryJournal) Logged() int64 { return 0 }

func (j *memoryJournal) Cut() (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return uint64(len(j.records)), nil
}

func (j *memoryJournal) Compact(segment uint64, snapshot func(emit func([]byte) error) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.snapshot = nil
	j.segment = int(segment)
	return snapshot(func(record []byte) error {
		j.snapshot = append(j.snapshot, slices.Clone(record))
		return nil
	})
}

func (j *memoryJournal) replay(restore func([]byte) error) error {
	j.records = j.records[:max(j.committed, j.segment)]
	for _, record := range slices.Concat(j.snapshot, j.records[j.segment:]) {
		if err := restore(record); err != nil {
			return err
		}
	}
	return nil
}
