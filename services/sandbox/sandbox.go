// Package sandbox runs stand-ins for MongoDB and Azure Service Bus inside one
// process, for development and tests. Unmodified official clients connect to
// them over TCP.
//
//	s, err := sandbox.New(sandbox.Config{})
//	…
//	go s.Run(ctx)
//	client, err := mongo.Connect(options.Client().ApplyURI(s.MongoURI()))
//
// What they do they do as the real services do, and what they do not do they
// refuse by name; see the packages below internal.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/faults"
	"changerelay/services/sandbox/internal/journal"
	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongofaults"
	"changerelay/services/sandbox/internal/mongodb/mongoserver"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/busfaults"
	"changerelay/services/sandbox/internal/servicebus/emulatorconfig"
	"changerelay/services/sandbox/internal/servicebus/gateway"
	"changerelay/services/sandbox/internal/servicebus/management"
	"changerelay/services/sandbox/internal/statuspage"
)

// Config says where a sandbox listens and what it begins with. The zero Config
// listens on free ports of 127.0.0.1.
type Config struct {
	// Addresses are host:port; port 0, as in the default 127.0.0.1:0, takes a
	// free one.
	MongoAddress      string
	ServiceBusAddress string
	ManagementAddress string
	HTTPAddress       string
	// Entities is a configuration of the official Service Bus emulator
	// (Config.json). By default there is a topic "changes" with the
	// subscriptions "projector", with sessions, and "observer".
	Entities io.Reader
	// CheckSAS has tokens checked that Service Bus clients show, and refuses what
	// they do not allow. The keys are SASKeys and the one in
	// ServiceBusConnectionString, which may do everything.
	CheckSAS bool
	SASKeys  []SASKey
	// DataDir is a directory that keeps every acknowledged write, so that it
	// outlives the process however that ends. By default all is in memory.
	DataDir string
	// Accounts are the MongoDB users and roles, in JSON as docs/sandbox.md shows
	// it. With them clients have to authenticate, and may do what their roles
	// say; by default everybody may do everything.
	Accounts io.Reader
	// MongoVersion is the version of MongoDB to stand in for: 4.4, 5.0, 6.0, 7.0
	// or 8.0, the default.
	MongoVersion string
	// OplogEntries and OplogBytes bound the history that change streams can
	// resume from; 0 takes the default.
	OplogEntries int
	OplogBytes   int
	// TTLInterval is the pause between two deletions of expired documents,
	// 0 for a minute.
	TTLInterval time.Duration
	// World is what the servers' surroundings are like; the zero World is none.
	// SetWorld changes it.
	World World
	Log   zerolog.Logger
}

// ErrEntities is what New returns for Entities that cannot be read.
var ErrEntities = errors.New("read the Service Bus configuration")

// ErrVersion is what New returns for a MongoVersion that is none.
var ErrVersion = errors.New("choose the version of MongoDB")

// ErrAccounts is what New returns for Accounts that cannot be read.
var ErrAccounts = errors.New("read the MongoDB users and roles")

// Sandbox is a running pair of stand-ins, with a status page.
type Sandbox struct {
	engine     *engine.Engine
	mongo      *command.Server
	broker     *broker.Broker
	gateway    *gateway.Gateway
	amqp       *amqpserver.Server
	management *management.Server
	faults     *faults.Registry
	page       *statuspage.Server
	journals   []*journal.Journal

	surroundings surroundings
}

// New binds all addresses, so that they are known, and serves nothing yet.
func New(config Config) (*Sandbox, error) {
	entities := emulatorconfig.Default()
	if config.Entities != nil {
		var err error
		if entities, err = emulatorconfig.Read(config.Entities); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrEntities, err)
		}
	}
	accounts, err := readAccounts(config.Accounts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccounts, err)
	}
	s := &Sandbox{}
	if err := s.build(config, entities, accounts); err != nil {
		return nil, errors.Join(err, s.unbind())
	}
	return s, nil
}

// readAccounts gives nil where there are none to read.
func readAccounts(from io.Reader) (*access.Accounts, error) {
	if from == nil {
		return nil, nil
	}
	accounts, err := access.Read(from)
	return &accounts, err
}

func (s *Sandbox) build(config Config, entities emulatorconfig.Config, accounts *access.Accounts) (err error) {
	if s.engine, err = s.newEngine(config); err != nil {
		return err
	}
	if s.gateway, err = gateway.New(gateway.Config{
		Addresses: []string{addressOr(config.ServiceBusAddress), addressOr(config.ManagementAddress)},
		Network:   s.surroundings.messaging.Listener, Log: config.Log,
	}); err != nil {
		return err
	}
	version, err := serverversion.Parse(config.MongoVersion)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	if s.mongo, err = mongoserver.New(command.Config{
		Address: addressOr(config.MongoAddress), Engine: s.engine, Version: version, Accounts: accounts, TLS: s.gateway.TLS(),
		Network: s.surroundings.mongo.Listener, Log: config.Log,
	}); err != nil {
		return err
	}
	if s.broker, err = s.newBroker(config); err != nil {
		return err
	}
	if err = entities.Apply(s.broker); err != nil {
		return err
	}
	keys, err := config.keys()
	if err != nil {
		return err
	}
	s.amqp = amqpserver.New(amqpserver.Config{Listener: s.gateway.AMQP(), Broker: s.broker, Keys: keys, Logger: config.Log})
	s.management = management.New(s.broker, management.Config{
		Listener: s.gateway.HTTP(), CertificatePEM: s.gateway.CertificatePEM(), WebSocket: s.gateway.WebSocket(),
		Keys: keys, Log: config.Log,
	})
	s.faults = faults.New(append(mongofaults.Kinds(s.mongo), busfaults.Kinds(s.broker, s.amqp)...)...)
	s.SetWorld(config.World)
	s.page, err = s.newPage(addressOr(config.HTTPAddress), keys)
	return err
}

func (s *Sandbox) newEngine(config Config) (*engine.Engine, error) {
	c := engine.Config{
		OplogEntries: config.OplogEntries, OplogBytes: config.OplogBytes, TTLInterval: config.TTLInterval,
		Log: config.Log,
	}
	if config.DataDir == "" {
		return engine.New(c), nil
	}
	return engine.Recover(c, func(replay func([]byte) error) (engine.Journal, error) {
		return s.openJournal(filepath.Join(config.DataDir, mongoDir), config.Log, replay)
	})
}

func (s *Sandbox) newBroker(config Config) (*broker.Broker, error) {
	b, err := broker.New(broker.Config{MaxMessageBytes: config.World.ServiceBus.MaxMessageBytes, Log: config.Log})
	if err != nil || config.DataDir == "" {
		return b, err
	}
	j, err := s.openJournal(filepath.Join(config.DataDir, serviceBusDir), config.Log, b.Restore)
	if err != nil {
		return nil, fmt.Errorf("recover the Service Bus namespace: %w", err)
	}
	b.Keep(j)
	return b, nil
}

// openJournal replays a directory and keeps its journal to be closed.
func (s *Sandbox) openJournal(dir string, log zerolog.Logger, replay func([]byte) error) (*journal.Journal, error) {
	j, found, err := journal.Open(dir, replay)
	if errors.Is(err, journal.ErrDamaged) {
		return nil, fmt.Errorf("%w: sandbox salvage --data %s keeps what can be read, and says what is lost", err, filepath.Dir(dir))
	}
	if err != nil {
		return nil, err
	}
	s.journals = append(s.journals, j)
	log.Info().Str("directory", dir).Int64("records", found.Records).Int64("cut_bytes", found.Cut).
		Msg("journal replayed")
	return j, nil
}

func addressOr(address string) string {
	if address == "" {
		return "127.0.0.1:0"
	}
	return address
}

// unbind gives free what a failed build has bound: a part that is run under a
// context that is over closes its listener at once.
func (s *Sandbox) unbind() error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var errs []error
	if s.mongo != nil {
		errs = append(errs, s.mongo.Run(over))
	}
	if s.gateway != nil {
		errs = append(errs, s.gateway.Close())
	}
	return errors.Join(append(errs, s.closeJournals())...)
}

func (s *Sandbox) closeJournals() error {
	var errs []error
	for _, j := range s.journals {
		errs = append(errs, j.Close())
	}
	return errors.Join(errs...)
}

// Run serves until ctx ends and returns nil, or returns what made one of the
// parts fail. It may be called once.
func (s *Sandbox) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		s.engine.Run, s.mongo.Run, s.broker.Run, s.gateway.Run, s.amqp.Run, s.management.Run, s.page.Run,
	} {
		group.Go(func() error { return run(ctx) })
	}
	err := group.Wait()
	s.faults.EndAll()
	return errors.Join(err, s.closeJournals())
}

// MongoURI is what MongoDB clients connect with.
func (s *Sandbox) MongoURI() string { return s.mongo.URI() }

// ServiceBusConnectionString is what Service Bus clients connect with: that of
// the official emulator, with the address in use.
func (s *Sandbox) ServiceBusConnectionString() string {
	return "Endpoint=sb://" + hostPort(s.gateway.Addr(0)) +
		";SharedAccessKeyName=" + rootKeyName + ";SharedAccessKey=" + rootKeySecret + ";UseDevelopmentEmulator=true;"
}

// ManagementURL is where the Service Bus administration API is.
func (s *Sandbox) ManagementURL() string { return "http://" + hostPort(s.gateway.Addr(1)) }

// ServiceBusCertificatePEM is what clients have to trust that speak TLS: to the
// address in MongoURI, to that in ServiceBusConnectionString, without
// UseDevelopmentEmulator, or to ManagementURL.
func (s *Sandbox) ServiceBusCertificatePEM() []byte { return s.gateway.CertificatePEM() }

// URL is where the status page and the faults' API are.
func (s *Sandbox) URL() string { return s.page.URL() }

// hostPort is an address a client on this machine can use: a listener on all
// addresses is reached at the loopback one.
func hostPort(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return a.String()
}
