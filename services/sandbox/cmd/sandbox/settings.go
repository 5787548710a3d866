package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox"
)

// settings are the command line.
type settings struct {
	config     sandbox.Config
	configFile string
	authFile   string
	world      string
	level      zerolog.Level
	version    bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var o settings
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.config.MongoAddress, "mongo", "127.0.0.1:27017", "`address` for MongoDB clients; port 0 takes a free one")
	flags.StringVar(&o.config.ServiceBusAddress, "servicebus", "127.0.0.1:5672", "`address` for AMQP clients")
	flags.StringVar(&o.config.ManagementAddress, "management", "127.0.0.1:5300", "`address` of the Service Bus management API")
	flags.StringVar(&o.config.HTTPAddress, "http", "127.0.0.1:8090", "`address` of the status page")
	flags.StringVar(&o.configFile, "config", "", "`file` in the form of the Service Bus emulator's Config.json (default: topic changes with subscriptions projector and observer)")
	flags.StringVar(&o.authFile, "auth", "", "`file` with the users and roles of MongoDB; clients then have to authenticate (default: everybody may do everything)")
	flags.StringVar(&o.world, "world", "loopback", "the `name` of a world, or a file with one: distance, bandwidth, limits and times ("+strings.Join(sandbox.WorldNames(), ", ")+")")
	flags.StringVar(&o.config.MongoVersion, "mongodb-version", "8.0", "`version` of MongoDB to stand in for: 4.4, 5.0, 6.0, 7.0 or 8.0")
	flags.BoolVar(&o.config.CheckSAS, "check-sas", false, "check the tokens of Service Bus clients, signed with the key in the connection string or with a --sas-key")
	flags.Func("sas-key", "a further `key` NAME:RIGHTS=SECRET, with rights such as Listen,Send; may be given more than once", o.addKey)
	flags.StringVar(&o.config.DataDir, "data", "", "`directory` that keeps every acknowledged write (default: all is in memory)")
	flags.IntVar(&o.config.OplogEntries, "oplog-entries", 0, "how many changes the oplog keeps at most (default 4000000)")
	flags.IntVar(&o.config.OplogBytes, "oplog-bytes", 0, "how many bytes of changes the oplog keeps at most (default 2 GiB)")
	flags.DurationVar(&o.config.TTLInterval, "ttl-interval", time.Minute, "pause between two deletions of expired documents")
	flags.BoolVar(&o.version, "version", false, "say which version this is")
	level := flags.String("log-level", "info", "`level` of the log on standard error: debug, info, warn or error")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	if o.level, err = zerolog.ParseLevel(*level); err != nil {
		return o, fmt.Errorf("log level %q: %w", *level, err)
	}
	if len(o.config.SASKeys) > 0 && !o.config.CheckSAS {
		return o, errors.New("--sas-key has no effect without --check-sas")
	}
	if o.config.OplogEntries < 0 || o.config.OplogBytes < 0 || o.config.TTLInterval <= 0 {
		return o, errors.New("the oplog's bounds and the TTL interval must be positive")
	}
	return o, nil
}

// addKey takes NAME:RIGHTS=SECRET.
func (o *settings) addKey(text string) error {
	key, secret, ok := strings.Cut(text, "=")
	name, rights, hasRights := strings.Cut(key, ":")
	if !ok || !hasRights {
		return errors.New("it must be NAME:RIGHTS=SECRET")
	}
	o.config.SASKeys = append(o.config.SASKeys, sandbox.SASKey{Name: name, Secret: secret, Rights: rights})
	return nil
}

// build makes the sandbox, which is then bound to its addresses.
func (o settings) build(log zerolog.Logger) (*sandbox.Sandbox, error) {
	o.config.Log = log
	if o.configFile != "" {
		file, err := os.Open(o.configFile)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		o.config.Entities = file
	}
	if o.authFile != "" {
		file, err := os.Open(o.authFile)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		o.config.Accounts = file
	}
	var err error
	if o.config.World, err = sandbox.FindWorld(o.world); err != nil {
		return nil, err
	}
	return sandbox.New(o.config)
}
