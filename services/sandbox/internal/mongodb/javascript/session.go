package javascript

import (
	"context"
	"crypto/md5" //nolint:gosec // hex_md5 is one of the helpers of the server's scripts
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"modernc.org/quickjs"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/interrupt"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

const (
	// engines is how many there are at most at a time.
	engines = 4
	// heap bounds the memory of an engine, in bytes.
	heap = 100 << 20
	// longestCall is how long a function may run
	// (internalQueryJavaScriptFnTimeoutMillis).
	longestCall = 60 * time.Second
	// longestWait is how long a command waits for an engine. One that waits may
	// hold what the others wait for.
	longestWait = 10 * time.Second
)

//go:embed prelude.js
var prelude string

// Pool bounds the engines of a server. The zero Pool is not one.
type Pool struct{ free chan struct{} }

// NewPool makes a pool of a server.
func NewPool() *Pool { return &Pool{free: make(chan struct{}, engines)} }

// Code reads a function that a client sends: a text or a code. It is a function, an
// expression, or the body of a function.
func Code(v bson.RawValue) (code string, ok bool) {
	switch v.Type {
	case bson.TypeString:
		return v.StringValue(), true
	case bson.TypeJavaScript:
		return v.JavaScript(), true
	}
	return "", false
}

// Session runs the functions of one command, and of those that go on with its
// cursor. It may be used by several goroutines at once.
type Session struct {
	pool *Pool
	work *interrupt.Context

	mu sync.Mutex
	// globals are the variables that functions find.
	globals bson.Raw
	vm      *quickjs.VM
	relay   quickjs.Value
	// broken tells that the engine failed: it is closed and not used again.
	broken bool
	// running is the context of the command that has the engine.
	running context.Context //nolint:containedctx // as long as the engine
	done    chan struct{}
	// until is when the function under way is to end.
	until time.Time
}

// Session makes one that ends with the work.
func (p *Pool) Session(work *interrupt.Context) *Session { return &Session{pool: p, work: work} }

// SetGlobals gives the functions variables.
func (s *Session) SetGlobals(scope bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.globals = scope
}

// Where asks a function about a document.
func (s *Session) Where(code string, doc bson.Raw) (bool, error) {
	answer, err := s.call("where", code, doc, nil)
	return answer == "true", err
}

// Emits gives what a function emits for a document: an array of documents with k
// and v.
func (s *Session) Emits(code string, doc bson.Raw) (bson.RawValue, error) {
	return result(s.call("map", code, doc, nil))
}

// Fold calls a function for each of calls, an array of arrays of arguments, behind
// the state that the call before it left. It gives the last state.
func (s *Session) Fold(code string, state, calls bson.RawValue) (bson.RawValue, error) {
	return result(s.call("fold", code, nil, []bson.RawValue{state, calls}))
}

// Call gives the value of a function.
func (s *Session) Call(code string, args ...bson.RawValue) (bson.RawValue, error) {
	return result(s.call("call", code, nil, args))
}

func result(text string, err error) (bson.RawValue, error) {
	if err != nil {
		return bson.RawValue{}, err
	}
	return decode(text)
}

func (s *Session) call(mode, code string, self bson.Raw, args []bson.RawValue) (answer string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.work.Interrupted(); err != nil {
		return "", err
	}
	if s.vm == nil {
		if err := s.open(); err != nil {
			return "", err
		}
	}
	var scope, object string
	if len(s.globals) > len(bsonkit.Empty) {
		scope = encode(bsonkit.Document(s.globals))
	}
	if self != nil {
		object = encode(bsonkit.Document(self))
	}
	s.until = time.Now().Add(longestCall)
	// A fault of the engine is to end the script and nothing else.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if failure := recover(); failure != nil {
			s.broken = true
			err = mongoerr.New(mongoerr.JSInterpreterFailure, "the script failed: %v", failure)
		}
	}()
	if s.broken {
		return "", mongoerr.New(mongoerr.JSInterpreterFailure, "the engine of the command's scripts has failed")
	}
	v, err := s.relay.Call(quickjs.UndefinedValue, mode, code, scope, object, encode(bsonkit.Array(args)))
	if err != nil {
		return "", s.failure(err)
	}
	answer, _ = v.(string)
	return answer, s.work.Interrupted() // a sleep ends early
}

// open takes an engine for the command under way, until that ends.
func (s *Session) open() error {
	ctx := s.work.Present()
	wait := time.NewTimer(longestWait)
	defer wait.Stop()
	select {
	case s.pool.free <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return mongoerr.New(mongoerr.JSInterpreterFailure, "%d other commands are running scripts", engines)
	}
	vm, err := quickjs.NewVM()
	if err != nil {
		<-s.pool.free
		return fmt.Errorf("engine for scripts: %w", err)
	}
	s.vm, s.running, s.done, s.broken = vm, ctx, make(chan struct{}), false
	s.work.AtEnd(s.close)
	vm.SetMemoryLimit(heap)
	if err := errors.Join(vm.SetEvalTimeout(longestCall), s.load()); err != nil {
		s.broken = true
		return fmt.Errorf("engine for scripts: %w", err)
	}
	go stopWith(ctx, vm, s.done)
	return nil
}

// load runs the prelude.
func (s *Session) load() error {
	if err := s.vm.RegisterHostFunc("sleepFor", s.sleep); err != nil {
		return err
	}
	err := s.vm.RegisterHostFunc("md5Of", func(args []any) (any, error) {
		text, _ := args[0].(string)
		sum := md5.Sum([]byte(text)) //nolint:gosec // see above
		return hex.EncodeToString(sum[:]), nil
	})
	if err != nil {
		return err
	}
	s.relay, err = s.vm.EvalValue(strings.TrimSpace(prelude)+"(sleepFor, md5Of)", quickjs.EvalGlobal)
	return err
}

// stopWith interrupts a script when the command is to end. It asks more than once:
// an engine forgets what it was asked before it began a function.
func stopWith(ctx context.Context, vm *quickjs.VM, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		vm.Interrupt()
		select {
		case <-done:
			return
		case <-again.C:
		}
	}
}

// sleep is the function of that name.
func (s *Session) sleep(args []any) (any, error) {
	var ms float64
	switch n := args[0].(type) {
	case int:
		ms = float64(n)
	case float64:
		ms = n
	}
	left := time.Until(s.until)
	if ms < float64(left.Milliseconds()) {
		left = time.Duration(ms * float64(time.Millisecond))
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-s.running.Done():
	case <-timer.C:
	}
	return nil, nil
}

// failure is the server's error for what a script threw, or why it was ended.
func (s *Session) failure(err error) error {
	if interrupted := s.work.Interrupted(); interrupted != nil {
		return interrupted
	}
	thrown, ok := errors.AsType[*quickjs.Error](err)
	switch {
	case !ok:
		return mongoerr.New(mongoerr.JSInterpreterFailure, "%v", err)
	case thrown.Message == "interrupted" && !time.Now().Before(s.until):
		return mongoerr.New(mongoerr.Interrupted, "operation was interrupted: a function ran for %v", longestCall)
	case thrown.Error() == "null":
		return mongoerr.New(mongoerr.JSInterpreterFailure, "Out of memory")
	case thrown.Name == "":
		return mongoerr.New(mongoerr.JSInterpreterFailure, "uncaught exception: %s", thrown.Error())
	}
	message := thrown.Message
	if name, cut := strings.CutSuffix(message, "' is not defined"); cut {
		message = strings.TrimPrefix(name, "'") + " is not defined"
	}
	return mongoerr.New(mongoerr.JSInterpreterFailure, "%s: %s", thrown.Name, message)
}

// close gives the engine back.
func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.done)
	if !s.broken {
		s.relay.Free()
	}
	_ = s.vm.Close() // one that has failed says so, and keeps its memory
	s.vm, s.running = nil, nil
	<-s.pool.free
}
