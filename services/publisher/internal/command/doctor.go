package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/credential"
	"changerelay/services/publisher/internal/doctor"
	"changerelay/services/publisher/internal/majority"
	"changerelay/services/publisher/internal/management"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/stream"
)

// ordinaryMessage is the largest message in bytes in the tier Standard.
// See https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
const ordinaryMessage = 256 << 10

// doctorTimeout bounds the whole examination.
const doctorTimeout = time.Minute

// longestLag is how long a majority of the source is waited for at most.
const longestLag = 10 * time.Second

// examine looks at the real entities with an operator's rights, and says what is
// wrong with them.
func examine(ctx context.Context, call Call) error {
	o, err := management.Options(call.Config.ServiceBusManagementURL, call.Config.ServiceBusConnection.Reveal())
	if err != nil {
		return err
	}
	return Examine(ctx, call, o)
}

// Examine is the command, with how to reach the management API.
func Examine(ctx context.Context, call Call, o azcore.ClientOptions) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	c := call.Config
	e := examination{config: c, secrets: c.Redactor(), found: []doctor.Finding{}}
	e.topic(ctx, o)
	if err := e.databases(ctx); err != nil {
		return err
	}
	if call.JSON {
		if err := json.NewEncoder(call.Stdout).Encode(struct {
			Findings []doctor.Finding `json:"findings"`
		}{e.found}); err != nil {
			return err
		}
	}
	for i, f := range e.found {
		if call.JSON {
			break
		}
		fmt.Fprintf(call.Stdout, "%d. %s %s (%s)\n   %s\n", i+1, f.Subject, f.Problem, f.Severity, f.Fix)
	}
	if len(e.found) > 0 {
		return fmt.Errorf("%d finding(s)", len(e.found))
	}
	return nil
}

// examination gathers findings.
type examination struct {
	config  config.Config
	secrets *redact.Redactor
	found   []doctor.Finding
}

func (e *examination) settings() doctor.Settings {
	return doctor.Settings{
		Takeover: e.config.LeaseTTL + e.config.SendTimeout + e.config.CheckpointInterval + config.AttemptTimeout,
		Mixed:    e.config.Batching == config.BatchMixed,
		Images:   e.config.Mode == config.ModeDocuments && e.config.FullDocumentBeforeChange == "required",

		CompressAbove: e.config.CompressAbove,
	}
}

// topic reads topic and subscriptions.
func (e *examination) topic(ctx context.Context, o azcore.ClientOptions) {
	topic, err := e.readTopic(ctx, o)
	if err != nil {
		e.found = append(e.found, doctor.Finding{
			Subject: fmt.Sprintf("topic %q", e.config.ServiceBusTopic), Severity: doctor.Fault,
			Problem: "cannot be examined: " + e.secrets.Text(err.Error()),
			Fix:     "create it, or run doctor with an identity that has the claim Manage, or Azure Service Bus Data Owner",
		})
		return
	}
	e.found = append(e.found, doctor.JudgeTopic(topic, e.settings())...)
}

func (e *examination) adminClient(o azcore.ClientOptions) (*admin.Client, error) {
	options := &admin.ClientOptions{ClientOptions: o}
	if e.config.ServiceBusConnection != "" {
		return admin.NewClientFromConnectionString(e.config.ServiceBusConnection.Reveal(), options)
	}
	token, err := credential.Of(e.config.AzureCredential)
	if err != nil {
		return nil, err
	}
	return admin.NewClient(e.config.ServiceBusNamespace, token, options)
}

var errNoTopic = errors.New("there is no such topic")

func (e *examination) readTopic(ctx context.Context, o azcore.ClientOptions) (doctor.Topic, error) {
	client, err := e.adminClient(o)
	if err != nil {
		return doctor.Topic{}, err
	}
	name := e.config.ServiceBusTopic
	got, err := client.GetTopic(ctx, name, nil)
	if err != nil {
		return doctor.Topic{}, err
	}
	if got == nil {
		return doctor.Topic{}, errNoTopic
	}
	topic := doctor.Topic{
		Name:         name,
		Active:       value(got.Status) == admin.EntityStatusActive,
		Deduplicates: value(got.RequiresDuplicateDetection),
		Window:       doctor.Duration(value(got.DuplicateDetectionHistoryTimeWindow)),
		Partitioned:  value(got.EnablePartitioning),
		TimeToLive:   doctor.Duration(value(got.DefaultMessageTimeToLive)),
		MaxBytes:     int64(value(got.MaxSizeInMegabytes)) << 20,
		MaxMessage:   value(got.MaxMessageSizeInKilobytes) << 10,
	}
	if topic.MaxMessage == 0 {
		topic.MaxMessage = ordinaryMessage // only Premium says
	}
	if size, err := client.GetTopicRuntimeProperties(ctx, name, nil); err == nil && size != nil {
		topic.Bytes = size.SizeInBytes
	}
	for pages := client.NewListSubscriptionsPager(name, nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return doctor.Topic{}, err
		}
		for _, s := range page.Subscriptions {
			topic.Subscriptions = append(topic.Subscriptions, doctor.Subscription{
				Name:             s.SubscriptionName,
				Active:           value(s.Status) == admin.EntityStatusActive,
				RequiresSession:  value(s.RequiresSession),
				TimeToLive:       doctor.Duration(value(s.DefaultMessageTimeToLive)),
				DeadLettersStale: value(s.DeadLetteringOnMessageExpiration),
			})
		}
	}
	return topic, nil
}

// value is what p points to, or nothing.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// databases reads source and state.
func (e *examination) databases(ctx context.Context) error {
	source, err := config.ConnectMongo(e.config.MongoURI)
	if err != nil {
		return fmt.Errorf("prepare the source: %w", err)
	}
	defer func() { _ = source.Disconnect(context.WithoutCancel(ctx)) }() // the process ends anyway
	e.found = append(e.found, doctor.JudgeSource(e.readSource(ctx, source), e.settings())...)
	if e.config.MayCopy() || e.resendsMany(ctx, source) {
		e.found = append(e.found, doctor.JudgeCopy(e.readCopy(ctx, source))...)
	}
	if ahead, err := changestream.ClockAhead(ctx, source); err == nil {
		e.found = append(e.found, doctor.JudgeClock(ahead)...)
	}
	if err := e.roles(ctx, source); err != nil {
		return err
	}
	return withState(ctx, e.config, func(state *mongostate.Database) error {
		missing, err := state.MissingIndexes(ctx)
		st := doctor.State{Name: e.config.StateDatabase, Missing: missing}
		if err != nil {
			st.Refusal = e.secrets.Text(err.Error())
		}
		if st.Lost, err = stream.MissingParked(ctx, state, e.config.StreamName); err != nil && st.Refusal == "" {
			st.Refusal = e.secrets.Text(err.Error())
		}
		st.LeaseLag = e.config.LeaseConfig().Longest()
		st.Lag, _ = state.MajorityLag(ctx, st.LeaseLag) // as above
		e.found = append(e.found, doctor.JudgeState(st)...)
		return nil
	})
}

// resendsMany tells whether the source has so many documents that a resend of them needs an
// index. A count that fails is no fault: the stream is examined by itself.
func (e *examination) resendsMany(ctx context.Context, client *mongo.Client) bool {
	if e.config.MayResend() != nil {
		return false
	}
	n, err := client.Database(e.config.SourceDatabase).Collection(e.config.Collections()[0]).EstimatedDocumentCount(ctx)
	return err == nil && n > manyDocuments
}

// readCopy asks the source how it would read for a copy.
func (e *examination) readCopy(ctx context.Context, client *mongo.Client) doctor.Copy {
	collection := client.Database(e.config.SourceDatabase).Collection(e.config.Collections()[0])
	copied := doctor.Copy{Database: e.config.SourceDatabase, Collection: collection.Name(), Order: e.config.Plan(time.Time{}).Order}
	index, err := backfill.Serving(ctx, collection, copied.Order)
	if err != nil {
		copied.Refusal = e.secrets.Text(err.Error())
	}
	copied.Served = index != nil
	return copied
}

func (e *examination) readSource(ctx context.Context, client *mongo.Client) doctor.Source {
	stream := e.config.Stream(client)
	read := doctor.Source{Name: stream.String()}
	if err := stream.Check(ctx); err != nil {
		read.Refusal = e.secrets.Text(err.Error())
	}
	var err error
	if read.Emptied, err = e.config.Emptied(ctx, client); err != nil {
		read.Refusal = cmp.Or(read.Refusal, e.secrets.Text(err.Error()))
	}
	// Where it cannot be asked nothing is known to be wrong with it.
	read.Lag, _ = majority.Lag(ctx, client, longestLag)
	now, err := changestream.Now(ctx, client)
	oldest, oldestErr := changestream.Oldest(ctx, client)
	if err == nil && oldestErr == nil {
		read.HistoryKnown = true
		read.History = time.Duration(now.Seconds-oldest.Seconds) * time.Second
		read.HistoryUncut = changestream.Uncut(ctx, client)
	}
	specifications, err := stream.Database.ListCollectionSpecifications(ctx, bson.D{})
	if err != nil {
		return read
	}
	for _, s := range specifications {
		ours := stream.Collections == nil || slices.Contains(stream.Collections, s.Name)
		if on, _ := s.Options.Lookup("changeStreamPreAndPostImages", "enabled").BooleanOK(); ours && !on {
			read.WithoutImages = append(read.WithoutImages, s.Name)
		}
	}
	return read
}

// setUp creates what the publisher needs in the state database, so that its own
// role need not be allowed to.
func setUp(ctx context.Context, call Call) error {
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		if err := state.Setup(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintf(call.Stdout, "{\"state_database\":%q,\"ready\":true}\n", call.Config.StateDatabase)
		return err
	})
}
