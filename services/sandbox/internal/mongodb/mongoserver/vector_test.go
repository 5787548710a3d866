package mongoserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// vector is a scenario recorded from a real server: what was sent to it and
// what it answered.
type vector struct {
	name        string
	Description string
	Requires    struct{ TinyOplog bool }
	Steps       []vectorStep
}

// vectorStep is one command with its recorded reply.
type vectorStep struct {
	Name     string
	DB       string
	Command  *tree
	Op       string
	Sequence string
	Session  string
	Async    string
	Await    string

	SleepMs, Times, AtLeastMs, WithinMs int

	RepeatUntil *repeatUntil
	Save        map[string]string
	Only, Drop  []string
	SortBy      map[string]string
	Unordered   []string
	Reply       *tree
}

// repeatUntil sends a step again until its reply has something.
type repeatUntil struct {
	Path           string
	Absent         bool
	Accumulate     bool
	MaxMs, EveryMs int
}

// TestVector_Vectors compares the sandbox with the replies of a MongoDB 4.4.1.
func TestVector_Vectors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/vectors/*/*.json")
	must(t, err)
	if len(files) < 90 {
		t.Fatalf("got %d vectors, want at least 90", len(files))
	}
	for _, file := range files {
		v := readVector(t, file)
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if step, difference := v.run(t); difference != "" {
				t.Errorf("step %q: %s", step, difference)
			}
		})
	}
}

func readVector(t *testing.T, file string) vector {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	v := vector{name: filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".json")}
	must(t, json.Unmarshal(text, &v))
	return v
}

// database is the name that $db stands for.
func (v vector) database() string {
	name := "conf_" + strings.ReplaceAll(v.name, "/", "_")
	return name[:min(len(name), 60)]
}

// tinyOplog is small enough for a vector to fill it.
const tinyOplog = 20 << 20

// run plays the vector against a server of its own. It returns the step whose
// reply differs, and how.
func (v vector) run(t *testing.T) (step, difference string) {
	config := engine.Config{}
	if v.Requires.TinyOplog {
		config.OplogBytes = tinyOplog
	}
	version, err := serverversion.Parse("4.4")
	must(t, err)
	h := serve(t, command.Config{Engine: engine.New(config), Version: version})
	p := &player{
		vector: v, t: t, address: h.server.Addr().String(), variables: map[string]tree{},
		sessions: map[string]uuid.UUID{}, awaited: map[string]chan playedReply{},
	}
	p.client = newRawClient(t, p.address)
	for _, s := range v.Steps {
		if difference := p.play(s); difference != "" {
			return s.Name, difference
		}
	}
	return "", ""
}

// player keeps what the steps of one run share.
type player struct {
	vector    vector
	t         *testing.T
	address   string
	client    *rawClient
	variables map[string]tree
	sessions  map[string]uuid.UUID
	awaited   map[string]chan playedReply
}

type playedReply struct {
	reply bson.Raw
	err   error
}

// stepLimit bounds a step that does not say how long it may take.
const stepLimit = time.Minute

func (p *player) play(s vectorStep) (difference string) {
	if s.SleepMs > 0 && !p.vector.Requires.TinyOplog {
		p.pause(time.Duration(s.SleepMs) * time.Millisecond)
	}
	limit := stepLimit
	if s.WithinMs > 0 {
		limit = time.Duration(s.WithinMs) * time.Millisecond
	}
	began := time.Now()
	var last playedReply
	if s.Await != "" {
		last = p.await(s.Await, limit)
	} else {
		m, err := p.message(s)
		if err != nil {
			return err.Error()
		}
		if s.Async != "" {
			p.sendAside(s.Async, m)
			return ""
		}
		for range max(1, s.Times) {
			last.reply, last.err = p.client.roundTrip(m, limit)
		}
		if s.RepeatUntil != nil && last.err == nil {
			last.reply, last.err = p.repeat(*s.RepeatUntil, m, last.reply)
		}
	}
	if took := time.Since(began); took < time.Duration(s.AtLeastMs)*time.Millisecond {
		return fmt.Sprintf("got the reply after %s, want it after at least %d ms", took, s.AtLeastMs)
	}
	return p.check(s, last)
}

func (p *player) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.t.Context().Done():
	}
}

// await gives the reply of a message that was sent aside.
func (p *player) await(name string, limit time.Duration) playedReply {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case reply := <-p.awaited[name]:
		return reply
	case <-timer.C:
		return playedReply{err: errors.New("the awaited reply did not come in time")}
	}
}

// sendAside sends a message over a connection of its own.
func (p *player) sendAside(name string, m message) {
	answer := make(chan playedReply, 1)
	p.awaited[name] = answer
	client := newRawClient(p.t, p.address)
	go func() {
		reply, err := client.roundTrip(m, stepLimit)
		answer <- playedReply{reply, err}
	}()
}

// repeat sends the message until the reply has what is waited for.
func (p *player) repeat(until repeatUntil, m message, reply bson.Raw) (bson.Raw, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Duration(until.MaxMs)*time.Millisecond)
	defer cancel()
	gathered := reply
	for {
		t, err := treeOf(gathered)
		if err != nil {
			return nil, err
		}
		if _, there := t.at(until.Path); there != until.Absent || t.failed() || ctx.Err() != nil {
			return gathered, nil
		}
		if until.EveryMs > 0 {
			p.pause(time.Duration(until.EveryMs) * time.Millisecond)
		}
		next, err := p.client.roundTrip(m, stepLimit)
		if err != nil {
			return nil, err
		}
		if !until.Accumulate {
			gathered = next
			continue
		}
		if gathered, err = joinBatches(gathered, next); err != nil {
			return nil, err
		}
	}
}

// joinBatches puts the batch of an earlier reply in front of that of a later.
func joinBatches(earlier, later bson.Raw) (bson.Raw, error) {
	var reply bson.D
	if err := bson.Unmarshal(later, &reply); err != nil {
		return nil, err
	}
	var before struct {
		Cursor struct {
			NextBatch bson.A `bson:"nextBatch"`
		}
	}
	if err := bson.Unmarshal(earlier, &before); err != nil {
		return nil, err
	}
	for i, f := range reply {
		cursor, ok := f.Value.(bson.D)
		if f.Key != "cursor" || !ok {
			continue
		}
		for j, part := range cursor {
			if batch, ok := part.Value.(bson.A); ok && part.Key == "nextBatch" {
				cursor[j].Value = slices.Concat(before.Cursor.NextBatch, batch)
			}
		}
		reply[i].Value = cursor
	}
	return bson.Marshal(reply)
}

// message builds what a step sends.
func (p *player) message(s vectorStep) (message, error) {
	command, err := s.Command.rewrite(p.expand)
	if err != nil {
		return message{}, err
	}
	db := p.names(s.DB)
	m := message{sequence: s.Sequence}
	if s.Op == "query" {
		m.legacy = db
	}
	if s.Session != "" {
		command.object = append(command.object, field{"lsid", p.lsid(s.Session)})
	}
	if m.legacy == "" && s.DB != "-" {
		command.object = append(command.object, field{"$db", tree{scalar: db}})
	}
	if s.Sequence != "" {
		documents, _ := command.get(s.Sequence)
		command = command.without([]string{s.Sequence})
		for _, element := range documents.array {
			doc, err := element.document()
			if err != nil {
				return m, err
			}
			m.documents = append(m.documents, doc)
		}
	}
	m.body, err = command.document()
	return m, err
}

// names puts the database's name where $db stands.
func (p *player) names(text string) string {
	db := p.vector.database()
	return strings.ReplaceAll(strings.ReplaceAll(text, "$db2", db+"_2"), "$db", db)
}

// expand turns the special values of commands into plain ones.
func (p *player) expand(t tree) (tree, error) {
	if text, ok := t.scalar.(string); ok && !t.isObject() && !t.isArray() {
		return tree{scalar: p.names(text)}, nil
	}
	if len(t.object) != 1 {
		return t, nil
	}
	value := t.object[0].value
	switch t.object[0].key {
	case "$var":
		saved, ok := p.variables[value.scalar.(string)]
		if !ok {
			return t, fmt.Errorf("nothing was saved as %s", value)
		}
		return saved, nil
	case "$lsid":
		return p.lsid(value.scalar.(string)), nil
	case "$repeat":
		return tree{scalar: strings.Repeat(value.array[0].scalar.(string), value.array[1].integer())}, nil
	case "$times":
		return copies(value.array[0].integer(), value.array[1])
	case "$nowPlus":
		at := time.Now().Add(time.Duration(value.integer()) * time.Millisecond).UTC()
		return tree{object: []field{{"$date", tree{scalar: at.Format("2006-01-02T15:04:05.000Z")}}}}, nil
	}
	return t, nil
}

func (t tree) integer() int {
	n, ok := t.scalar.(json.Number)
	if !ok {
		return 0
	}
	i, _ := n.Int64()
	return int(i)
}

// copies repeats a value; {$i: base} in it is base plus the index.
func copies(n int, value tree) (tree, error) {
	out := tree{array: make([]tree, n)}
	for i := range n {
		element, err := value.rewrite(func(t tree) (tree, error) {
			if base, ok := t.get("$i"); ok && len(t.object) == 1 {
				return tree{scalar: json.Number(fmt.Sprint(base.integer() + i))}, nil
			}
			return t, nil
		})
		if err != nil {
			return out, err
		}
		out.array[i] = element
	}
	return out, nil
}

// lsid is the id document of a named session, also saved as lsid:NAME.
func (p *player) lsid(name string) tree {
	id, ok := p.sessions[name]
	if !ok {
		id = uuid.New()
		p.sessions[name] = id
	}
	binary := tree{object: []field{{"$binary", tree{object: []field{
		{"base64", tree{scalar: base64.StdEncoding.EncodeToString(id[:])}},
		{"subType", tree{scalar: "04"}},
	}}}}}
	p.variables["lsid:"+name] = binary
	return tree{object: []field{{"id", binary}}}
}

// check compares a reply with the recorded one and saves what later steps use.
func (p *player) check(s vectorStep, got playedReply) string {
	if match, ok := s.Reply.get("$$match"); ok && match.scalar == "closed" {
		if !errors.Is(got.err, errHungUp) {
			return fmt.Sprintf("got reply %s, want the connection closed", got.reply)
		}
		return ""
	}
	if got.err != nil {
		return fmt.Sprintf("got error %v, want a reply", got.err)
	}
	reply, err := treeOf(got.reply)
	if err != nil {
		return err.Error()
	}
	for name, path := range s.Save {
		value, ok := reply.at(path)
		if !ok {
			return fmt.Sprintf("%s: not in the reply, wanted as %s", path, name)
		}
		p.variables[name] = value
	}
	for path, key := range s.SortBy {
		reply.sortAt(path, key)
	}
	c := comparison{
		variables: p.variables, unordered: s.Unordered,
		events: strings.HasPrefix(p.vector.name, "changestreams/"),
	}
	return c.differ("", *s.Reply, s.normalise(reply))
}

// sortAt sorts the array at a path by a field of its elements.
func (t tree) sortAt(path, key string) {
	if list, ok := t.at(path); ok {
		slices.SortStableFunc(list.array, func(a, b tree) int {
			x, _ := a.get(key)
			y, _ := b.get(key)
			return strings.Compare(x.String(), y.String())
		})
	}
}
