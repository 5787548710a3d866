package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/resend"
)

// mostSampled bounds the aggregates of a sample: they are one query's.
const mostSampled = 10_000

// eventsFlags are the arguments of publisher events.
type eventsFlags struct {
	aggregates []string
	sample     int
	all        bool
	rate       int
	out        string
}

func (l loader) events() *cobra.Command {
	var f eventsFlags
	c := &cobra.Command{
		Use: "events", Short: "print the source's events as messages, and send none",
		Long: `Print the source's events, or in documents mode the present state of documents, as
the messages that they are, by the mapping of the settings: {"message": …}, one a
line, those of each aggregate in order. Which: --aggregate ID, as often as needed,
--sample N, or --all. A document that cannot be mapped is {"unmappable": …}. The last
line is {"end": …}: without it something is missing.

Nothing is sent, and nothing is changed.`,
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.aggregates, "aggregate", nil, "the id of an aggregate, as messages have it; may be given several times")
	flags.IntVar(&f.sample, "sample", 0, "those of at most so many aggregates, of documents that are drawn")
	flags.BoolVar(&f.all, "all", false, "everything")
	flags.IntVar(&f.rate, "rate", defaultRate, "most documents a second; 0 is as fast as it goes")
	flags.StringVar(&f.out, "out", "", "the file to print to, which no other user may read; standard output where it is not given")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if f.out == "" {
			return printEvents(ctx, call, f)
		}
		file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("open the file for the events: %w", err)
		}
		call.Stdout = file
		err = file.Chmod(0o600) // it may have been there for others to read
		if err == nil {
			err = printEvents(ctx, call, f)
		}
		return errors.Join(err, file.Close())
	})
	return c
}

// check returns what is wrong with the arguments.
func (f *eventsFlags) check() error {
	kinds := 0
	for _, given := range []bool{len(f.aggregates) > 0, f.sample != 0, f.all} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return cli.Usagef("events needs one of --aggregate, --sample and --all")
	case f.sample < 0 || f.sample > mostSampled:
		return cli.Usagef("events: --sample is %d, not a number from 1 to %d", f.sample, mostSampled)
	case f.rate < 0:
		return cli.Usagef("events: --rate is %d, and no rate", f.rate)
	case slices.Contains(f.aggregates, ""):
		return cli.Usagef("events: --aggregate is empty")
	}
	return nil
}

// eventLine is a line of publisher events: one of these.
type eventLine struct {
	Message    *printedMessage   `json:"message,omitempty"`
	Unmappable *unmappableChange `json:"unmappable,omitempty"`
	End        *endOfEvents      `json:"end,omitempty"`
}

// printedMessage is a message as projector try and verify read it. A body that is no
// JSON has a name of its own.
type printedMessage struct {
	ID          string          `json:"message_id"`
	SessionID   string          `json:"session_id"`
	Subject     string          `json:"subject"`
	ContentType string          `json:"content_type,omitempty"`
	Properties  map[string]any  `json:"properties"`
	Body        json.RawMessage `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
}

// unmappableChange is a document of the source that is no event by the settings.
type unmappableChange struct {
	Document json.RawMessage `json:"document"` // its _id
	Reason   string          `json:"reason"`
}

// endOfEvents says that everything was printed.
type endOfEvents struct {
	Messages   int64 `json:"messages"`
	Unmappable int64 `json:"unmappable"`
}

// printEvents prints what was selected of the source.
func printEvents(ctx context.Context, call Call, f eventsFlags) error {
	if err := call.Config.MayResend(); err != nil {
		return err
	}
	client, disconnect, err := connectSource(ctx, call.Config)
	if err != nil {
		return err
	}
	defer disconnect()
	if err := (&eventsPrinter{call: call, mapper: call.Config.Mapper(nil)}).print(ctx, client, f); err != nil {
		return redacted(call.Config, err)
	}
	return nil
}

// eventsPrinter prints events, and counts them.
type eventsPrinter struct {
	call   Call
	mapper relay.Mapper
	end    endOfEvents
}

func (p *eventsPrinter) print(ctx context.Context, client *mongo.Client, f eventsFlags) error {
	out := bufio.NewWriter(p.call.Stdout)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	source, err := p.open(ctx, client, f)
	if err != nil {
		return err
	}
	for source != nil {
		batch, err := source.Read(ctx)
		if errors.Is(err, backfill.ErrDone) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		for _, change := range batch.Changes {
			if err := p.line(lines, change); err != nil {
				return fmt.Errorf("print an event: %w", err)
			}
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("print an event: %w", err)
		}
	}
	if err := lines.Encode(eventLine{End: &p.end}); err != nil {
		return fmt.Errorf("print the end: %w", err)
	}
	return out.Flush()
}

// open is what reads the selection, as of now or later; nil where nothing is selected.
func (p *eventsPrinter) open(ctx context.Context, client *mongo.Client, f eventsFlags) (*backfill.Source, error) {
	c := p.call.Config
	collection := client.Database(c.SourceDatabase).Collection(c.Collections()[0])
	there, known, err := changestream.Of(collection).Exists(ctx, collection.Name())
	if err != nil {
		return nil, err
	}
	if known && !there {
		return nil, fmt.Errorf("the database %q has no collection %q; SOURCE_DATABASE and SOURCE_COLLECTION say where the events are", c.SourceDatabase, collection.Name())
	}
	selection := resend.Selection{Aggregates: f.aggregates}
	if f.sample > 0 {
		if selection.Aggregates, err = p.draw(ctx, collection, f.sample); err != nil || len(selection.Aggregates) == 0 {
			return nil, err
		}
	}
	plan, err := c.Events(selection, f.rate)
	if err != nil {
		return nil, err
	}
	place, err := backfill.Behind(nil)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, config.CommandSelectTimeout)
	defer cancel()
	if place.Start, err = changestream.Now(asking, client); err != nil {
		return nil, err
	}
	return backfill.New(collection, plan, place, zerolog.New(c.Redactor().Writer(p.call.Stderr))), nil
}

// draw are the aggregates of documents that the server draws, at most so many.
func (p *eventsPrinter) draw(ctx context.Context, collection *mongo.Collection, most int) ([]string, error) {
	cursor, err := collection.Aggregate(ctx, mongo.Pipeline{{{Key: "$sample", Value: bson.D{{Key: "size", Value: most}}}}})
	if err != nil {
		return nil, fmt.Errorf("draw documents: %w", err)
	}
	defer func() { _ = cursor.Close(ctx) }()
	drawn := map[string]bool{}
	var aggregates []string
	for cursor.Next(ctx) {
		change, err := bson.Marshal(bson.D{
			{Key: "operationType", Value: string(contract.Snapshot)},
			{Key: "ns", Value: bson.D{{Key: "db", Value: collection.Database().Name()}, {Key: "coll", Value: collection.Name()}}},
			{Key: "documentKey", Value: bson.D{{Key: "_id", Value: cursor.Current.Lookup("_id")}}},
			{Key: "fullDocument", Value: cursor.Current},
		})
		if err != nil {
			return nil, fmt.Errorf("draw documents: %w", err)
		}
		event, carries, err := p.mapper.Map(relay.Change{Raw: change, Position: contract.SnapshotPosition(0, 1, 1)})
		if err == nil && carries && !drawn[event.AggregateID] {
			drawn[event.AggregateID] = true
			aggregates = append(aggregates, event.AggregateID)
		}
	}
	if err := cursor.Err(); err != nil {
		return nil, fmt.Errorf("draw documents: %w", err)
	}
	return aggregates, nil
}

// line prints what a document of the source is.
func (p *eventsPrinter) line(lines *json.Encoder, change relay.Change) error {
	event, carries, err := p.mapper.Map(change)
	if err == nil && !carries {
		return nil
	}
	var message contract.Message
	if err == nil {
		message, err = contract.Encode(event, contract.EncodeOptions{})
	}
	if err != nil {
		p.end.Unmappable++
		id, idErr := bson.MarshalExtJSON(bson.D{{Key: "_id", Value: bson.Raw(change.Raw).Lookup("documentKey", "_id")}}, false, false)
		if idErr != nil {
			id = nil
		}
		return lines.Encode(eventLine{Unmappable: &unmappableChange{id, err.Error()}})
	}
	p.end.Messages++
	printed := printedMessage{
		ID: message.ID, SessionID: message.SessionID, Subject: message.Subject, ContentType: message.ContentType, Properties: message.Properties,
	}
	if message.ContentType == contract.ContentTypeBSON {
		printed.BodyBase64 = message.Body
	} else {
		printed.Body = message.Body
	}
	return lines.Encode(eventLine{Message: &printed})
}
