package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/source"
)

// closeTimeout bounds the clearing away.
const closeTimeout = 30 * time.Second

// Config says where stages are set up.
type Config struct {
	Place cluster.Place
	// Given are servers to use; nil starts a sandbox for each stage.
	Given *cluster.Endpoints
	// World is the world that the sandbox begins in, as a JSON object; empty for none.
	World string
	// History is how many small changes the sandbox's oplog keeps; 0 is as many as usual.
	History int
}

// smallChange is more than a change of few fields takes in the oplog, in bytes.
const smallChange = 1 << 10

// Stage is where one measurement is made. Open sets it up, Close clears it away.
type Stage struct {
	// Dir takes the logs.
	Dir string

	binaries  cluster.Binaries
	endpoints cluster.Endpoints
	client    *mongo.Client // nil until Open has found the servers
	sandbox   *cluster.Node // nil where servers were given
	name      string
	topics    []string
}

// Open sets up a stage with topics. Its name tells it from all others, in
// directories, databases and topics.
func Open(ctx context.Context, cfg Config, name string, topics ...Topic) (*Stage, error) {
	s := &Stage{Dir: filepath.Join(cfg.Place.Dir, name), binaries: cfg.Place.Binaries, name: name}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	if cfg.Given != nil {
		s.endpoints = *cfg.Given
	} else {
		world := ""
		if cfg.World != "" {
			world = filepath.Join(s.Dir, "world.json")
			if err := os.WriteFile(world, []byte(cfg.World), 0o600); err != nil {
				return nil, fmt.Errorf("write the world: %w", err)
			}
		}
		var args []string
		if cfg.History > 0 {
			args = cluster.SandboxAnywhere("--oplog-entries", strconv.Itoa(cfg.History), "--oplog-bytes", strconv.Itoa(cfg.History*smallChange))
		}
		c := cluster.New(cluster.Config{Binaries: cfg.Place.Binaries, Dir: s.Dir, World: world, SandboxArgs: args})
		s.sandbox = c.Sandbox
		if err := c.StartSandbox(ctx); err != nil {
			c.Close()
			return nil, err
		}
		s.endpoints = c.Endpoints()
	}
	if err := errors.Join(s.connect(), s.create(ctx, topics)); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func (s *Stage) connect() (err error) {
	if s.client, err = mongo.Connect(options.Client().ApplyURI(s.endpoints.MongoURI)); err != nil {
		return fmt.Errorf("connect to MongoDB: %w", err)
	}
	return nil
}

// disconnect is for before the sandbox ends, or the client would look for it for a while.
func (s *Stage) disconnect(ctx context.Context) {
	if s.client != nil {
		_ = s.client.Disconnect(context.WithoutCancel(ctx)) // of what is open it has no more to say
	}
}

// Client is a client of the stage's MongoDB, until Servers or Close.
func (s *Stage) Client() *mongo.Client { return s.client }

// Source writes to the collection that publishers of the topic of that short name watch.
func (s *Stage) Source(topic string) *source.Writer {
	n := s.Names(topic)
	return source.NewWriter(s.client, n.SourceDatabase, n.SourceCollection)
}

// Endpoints say where the servers are.
func (s *Stage) Endpoints() cluster.Endpoints { return s.endpoints }

// Names are the names on this stage, with the topic of that short name.
func (s *Stage) Names(topic string) cluster.Names {
	n := cluster.DefaultNames().OfRun(s.name)
	n.Topic = s.Topic(topic)
	return n
}

// Topic is what the topic of that short name is called here.
func (s *Stage) Topic(short string) string { return s.name + "-" + short }

// Become changes the world of the stage's sandbox to the one that a JSON object
// describes, as for the sandbox's /world.
func (s *Stage) Become(ctx context.Context, world string) error {
	if s.sandbox == nil {
		return errors.New("servers that were given are as they are, and no other world")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.endpoints.SandboxStatusURL+"/world", strings.NewReader(world))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("change the world: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("change the world to %s: %s: %s", world, response.Status, answer)
	}
	return nil
}

// Services lays out publishers and projectors on the stage. What cfg does not
// say of servers and programs is filled in.
func (s *Stage) Services(cfg cluster.Config) (*cluster.Cluster, error) {
	cfg.Binaries, cfg.Dir = s.binaries, s.Dir
	if cfg.Backend == nil {
		cfg.Backend = &s.endpoints
	}
	c := cluster.New(cfg)
	return c, c.LayOut()
}

// Servers stops the sandbox and returns what it took; false where servers were
// given, which may be anywhere.
func (s *Stage) Servers(ctx context.Context) (cluster.Usage, bool) {
	if s.sandbox == nil {
		return cluster.Usage{}, false
	}
	s.disconnect(ctx)
	// How it ends says nothing of the relay.
	_ = cluster.Stop(ctx, s.sandbox)
	return s.sandbox.Usage(), true
}

// Close ends the sandbox, or removes what was made on servers that were given.
func (s *Stage) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if s.sandbox != nil {
		s.disconnect(ctx)
		s.sandbox.Kill()
		return nil
	}
	defer s.disconnect(ctx)
	return errors.Join(s.remove(ctx), s.drop(ctx))
}

// drop drops the databases of the stage.
func (s *Stage) drop(ctx context.Context) error {
	if s.client == nil {
		return nil
	}
	n := s.Names("")
	var errs []error
	for _, database := range []string{n.SourceDatabase, n.StateDatabase, n.ReadModelDatabase} {
		errs = append(errs, s.client.Database(database).Drop(ctx))
	}
	return errors.Join(errs...)
}
