package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
)

// errEarlierParked refuses a replay that would turn an aggregate's order around.
var errEarlierParked = errors.New("an earlier change of its aggregate is still parked: replay or discard that one first")

// errEarlierUnknown is the refusal where it is not known whether a replay would.
var errEarlierUnknown = errors.New("an earlier parked change may be of its aggregate, as that one's is not known: replay or discard that one first")

// replayFlags are the arguments of a replay, beside what it is about.
type replayFlags struct {
	// accept says that other settings may decide the messages' order.
	accept   bool
	why, who string
}

// replayParked sends parked changes as messages with the ids that they always
// had. It needs no lease: a message may come again at any time. What it keeps is
// the order of each aggregate among its parked changes, and behind what the stream
// has yet to send. No ids name them all.
func replayParked(ctx context.Context, call Call, f replayFlags, ids []string) error {
	config := call.Config
	dial, err := config.Dial()
	if err != nil {
		return fmt.Errorf("prepare Service Bus: %w", err)
	}
	topic := servicebus.New(config.ServiceBusTopic, dial)
	defer topic.Close()
	return withState(ctx, config, func(state *mongostate.Database) error {
		if err := config.Sends(ctx, state); err != nil {
			return err
		}
		if err := f.ordered(ctx, config, state); err != nil {
			return err
		}
		r := replay{
			config:  config,
			stream:  followed{config: config, state: state, until: time.Now().Add(passTime)},
			parked:  state.Parked(config.StreamName),
			mapper:  config.Mapper(nil),
			topic:   topic,
			secrets: config.Redactor(),
			report:  newReport(call.Stdout),
			held:    map[string]bool{},
		}
		return r.run(ctx, ids)
	})
}

// settingsDiffer is the cause of a ledger's entry that changes were replayed by other
// settings than the publishers'.
const settingsDiffer = "parked changes replayed with other settings"

// ordered refuses settings by which messages come to have another place in the topic's
// order than the publishers give them, or writes into the ledger that it is meant.
func (f *replayFlags) ordered(ctx context.Context, c config.Config, state *mongostate.Database) error {
	others, err := c.Reorders(ctx, state)
	if err != nil || len(others) == 0 {
		return err
	}
	text := strings.Join(others, ", ")
	if !f.accept {
		return fmt.Errorf("the publishers send stream %q otherwise: %s; a message of these settings would belong elsewhere, and later ones may be taken for repeats: "+
			"correct the settings, or where these are the right ones, give --accept-settings --why TEXT", c.StreamName, text)
	}
	scope, err := state.Scope(ctx, c.StreamName, c.LeaseName)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	return state.Ledger(c.StreamName, c.Partitions, 0).Enter(ctx, mongostate.Gap{
		FromTime: now, ToTime: now, Cause: settingsDiffer, Error: text + ": " + f.why, Decision: config.ReportChanged, At: now, Instance: f.who, Term: scope.Highest,
	})
}

// replay is one run of the command.
type replay struct {
	config  config.Config
	stream  followed
	parked  *mongostate.Parked
	mapper  relay.Mapper
	topic   *servicebus.Topic
	secrets *redact.Redactor
	report  *report
	// held are the aggregates that have a change before the next which is neither
	// sent nor discarded.
	held map[string]bool
	// unknown is the first such change whose aggregate is not known: it may be that
	// of any later one. Empty where there is none.
	unknown string
}

// run replays the named changes, or all where none is named, oldest first.
func (r *replay) run(ctx context.Context, ids []string) error {
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	err := r.parked.Each(ctx, false, func(listed mongostate.ParkedChange) error {
		asked := len(ids) == 0 || wanted[listed.ID]
		delete(wanted, listed.ID)
		return r.consider(ctx, listed, asked)
	})
	if err != nil {
		return err
	}
	for id := range wanted {
		r.report.add(outcome{ID: id}, "", mongostate.ErrNotParked)
	}
	return r.report.err()
}

// consider replays one change if it was asked for. A change that stays parked
// holds its aggregate; one whose aggregate is not known holds all.
func (r *replay) consider(ctx context.Context, listed mongostate.ParkedChange, asked bool) error {
	message, err := r.message(ctx, &listed)
	said := outcome{ID: listed.ID, AggregateID: listed.AggregateID, EventID: listed.EventID}
	if asked && err == nil {
		err = r.send(ctx, listed, message)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !asked || err != nil {
		r.hold(listed)
	}
	if asked {
		if err != nil {
			err = errors.New(r.secrets.Text(err.Error()))
		}
		r.report.add(said, string(mongostate.Replayed), err)
	}
	return nil
}

// hold lets later changes wait for one that stays parked.
func (r *replay) hold(stays mongostate.ParkedChange) {
	switch {
	case stays.AggregateID != "":
		r.held[stays.AggregateID] = true
	case r.unknown == "":
		r.unknown = stays.ID
	}
}

// message makes the message of a parked change by the present configuration,
// which may map what an earlier one could not. It completes the aggregate's id.
func (r *replay) message(ctx context.Context, listed *mongostate.ParkedChange) (contract.Message, error) {
	whole, err := r.parked.Get(ctx, listed.ID)
	if err != nil {
		return contract.Message{}, err
	}
	if whole.Raw() == nil {
		return contract.Message{}, errors.New("the change was too large to be kept; only its document's key is known")
	}
	event, carries, err := r.mapper.Map(relay.Change{Raw: whole.Raw(), Position: contract.Position(whole.Position)})
	if err != nil {
		return contract.Message{}, err
	}
	if !carries {
		return contract.Message{}, errors.New("the change carries no event by the present configuration; discard it")
	}
	listed.AggregateID, listed.EventID = event.AggregateID, event.ID
	event.Term = listed.Term
	return contract.Encode(event, contract.EncodeOptions{CompressAbove: r.config.CompressAbove})
}

// send sends the message while nobody else deals with the change, and records it.
func (r *replay) send(ctx context.Context, listed mongostate.ParkedChange, message contract.Message) error {
	switch {
	case r.unknown != "":
		return fmt.Errorf("%w: %s", errEarlierUnknown, r.unknown)
	case r.held[listed.AggregateID]:
		return errEarlierParked
	}
	if err := r.stream.passes(ctx, listed); err != nil {
		return err
	}
	timeout := relay.SendTimeout(r.config.SendTimeout, len(message.Body))
	claimed, err := r.parked.Claim(ctx, listed.ID, r.config.InstanceID, claimTime+timeout)
	if err != nil {
		return err
	}
	sending, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := r.topic.Send(sending, []contract.Message{message}); err != nil {
		failed := r.parked.Unclaim(context.WithoutCancel(ctx), claimed, r.secrets.Text(err.Error()))
		return errors.Join(err, failed)
	}
	return r.parked.Resolve(context.WithoutCancel(ctx), claimed, mongostate.Replayed, message.ID)
}
