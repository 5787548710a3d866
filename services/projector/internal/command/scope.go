package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// scope is what a command works on: the group's part of a read database, with
// the projections of the environment. Whoever only looks takes it as it is;
// whoever changes something asks for it with changing, which has the environment
// compared with the projectors' own first.
type scope struct {
	cfg         config.Read
	store       *readmodel.Store
	projections projection.Projections
	declared    projection.Projections // without what rebuilds make of them
	records     rebuild.Records
	filling     delivery.Filling
	versions    delivery.Versions // of a command that changes something; nil where gaps do not matter
	lines       *json.Encoder
	flags       changeFlags
}

// printer prints lines of JSON of which a reader can copy what is to be run: only quotes and
// backslashes are escaped.
func printer(to io.Writer) *json.Encoder {
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	return lines
}

// onScope runs a command on the read database that the environment names.
func onScope(ctx context.Context, stdout io.Writer, command func(ctx context.Context, s *scope) error) error {
	s := &scope{lines: printer(stdout)}
	var err error
	if s.declared, err = s.cfg.Load(ctx); err != nil {
		return cli.Misconfigured(err)
	}
	return onReadDatabase(ctx, s.cfg.Service(), s.declared, func(db *database) error {
		s.store, s.projections, s.records = db.store, db.projections, db.records
		s.filling = rebuild.Filled(s.cfg.Group, s.records, s.declared, s.store.Writes)
		return command(ctx, s)
	})
}

// errOutOfScope means that the environment is not that of the projectors whose
// data a command would change.
var errOutOfScope = errors.New("refused, nothing is changed")

// errOtherVersions is errOutOfScope where the projectors may only not have begun anew since
// a rebuild has gone on.
var errOtherVersions = fmt.Errorf("%w by now", errOutOfScope)

// admit compares the environment with what the group's projectors have noted.
func (s *scope) admit(ctx context.Context) error {
	deployments, err := s.store.Deployments(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(deployments, func(d readmodel.Deployment) bool {
		return strings.EqualFold(d.Topic, s.cfg.Topic) && strings.EqualFold(d.Subscription, s.cfg.Subscription)
	})
	if at < 0 {
		return fmt.Errorf("%w: no projector of topic %q and subscription %q in the group %q of %q has started (%s): "+
			"set SERVICEBUS_TOPIC, SERVICEBUS_SUBSCRIPTION, READMODEL_GROUP and READMODEL_DATABASE as the projectors have them",
			errOutOfScope, s.cfg.Topic, s.cfg.Subscription, s.cfg.Group, s.cfg.Database, known(deployments))
	}
	return s.compare(ctx, s.store, &deployments[at])
}

// admitDead is admit for a command on dead letters. They may also be those of a
// subscription that the group was moved from, while it feeds nobody else; its projectors
// need not have started since.
func (s *scope) admitDead(ctx context.Context) error {
	feeds, err := s.store.Feeds(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(feeds, s.store.FedBy)
	if at < 1 {
		return s.admit(ctx)
	}
	holder, err := s.store.Holder(ctx, feeds[at])
	if err != nil {
		return err
	}
	if holder != "" {
		return fmt.Errorf("%w: %s: its dead letters are that group's, and what this one lacks of them takes projector rebuild", errOutOfScope, holder)
	}
	deployments, err := s.store.Deployments(ctx)
	if err != nil {
		return err
	}
	var last *readmodel.Deployment
	if len(deployments) > 0 {
		last = &deployments[0]
	}
	return s.compare(ctx, s.store.At(feeds[0]), last)
}

// compare compares the environment with those who have started, nil where none has, and
// with whose the read collections are, as a store of the group's subscription has it.
func (s *scope) compare(ctx context.Context, own *readmodel.Store, started *readmodel.Deployment) error {
	// Gaps matter where they do to the projectors, whatever the environment says,
	// and where an older release has not noted whether they do.
	if started == nil || started.OnGap != config.GapReport {
		s.versions = s.store.AggregateVersions
	}
	if err := own.CheckOwner(ctx, s.projections.Collections()); err != nil {
		return fmt.Errorf("%w: %w", errOutOfScope, err)
	}
	if err := own.CheckShapes(ctx); err != nil {
		return fmt.Errorf("%w: %w", errOutOfScope, err)
	}
	if s.flags.OtherProjections || started == nil {
		return nil
	}
	if differences := projection.Differences(s.projections.Parts(), started.Projections); len(differences) > 0 {
		refused := errOutOfScope
		if len(projection.Differences(s.records.Unnumbered(s.projections.Parts()), s.records.Unnumbered(started.Projections))) == 0 {
			refused = errOtherVersions
		}
		return fmt.Errorf("%w: the projections are not those that %s started with at %s: %s. Set PROJECTIONS and LATEST_COLLECTION as the projectors have them, "+
			"or roll out what has changed first; --other-projections goes on with those of this environment",
			refused, started.StartedBy, started.StartedAt.UTC().Format("2006-01-02T15:04:05Z"), strings.Join(differences, "; "))
	}
	return nil
}

// errUnknownHere means that a command has looked where nothing is to be seen.
var errUnknownHere = errors.New("nothing is known here")

// inhabited is an error unless a projector has started in the group, of the topic
// and the subscription where the environment names them. What is empty without
// one is most likely the wrong place.
func (s *scope) inhabited(ctx context.Context) error {
	deployments, err := s.store.Deployments(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(deployments, func(d readmodel.Deployment) bool {
		return (s.cfg.Topic == "" || strings.EqualFold(s.cfg.Topic, d.Topic)) && (s.cfg.Subscription == "" || strings.EqualFold(s.cfg.Subscription, d.Subscription))
	}) {
		return nil
	}
	return fmt.Errorf("%w: no projector%s in the group %q of %q has started (%s): "+
		"set READMODEL_MONGODB_URI, READMODEL_DATABASE, READMODEL_GROUP, SERVICEBUS_TOPIC and SERVICEBUS_SUBSCRIPTION as the projectors have them",
		errUnknownHere, s.cfg.Subscribed(), s.cfg.Group, s.cfg.Database, known(deployments))
}

// known names the deployments of a group.
func known(deployments []readmodel.Deployment) string {
	if len(deployments) == 0 {
		return "none has there at all, or only an older release"
	}
	names := make([]string, len(deployments))
	for i, d := range deployments {
		names[i] = fmt.Sprintf("topic %q with subscription %q", d.Topic, d.Subscription)
	}
	return "there are " + strings.Join(names, ", ")
}

// changeFlags are what changing commands take besides their own arguments.
type changeFlags struct {
	// DryRun has a command print what it would change, and change nothing.
	DryRun bool
	// OtherProjections lets the projections differ from the projectors' own.
	OtherProjections bool
	// AcceptGaps, AcceptUnfollowed and AcceptLost are those of a redrive.
	AcceptGaps, AcceptUnfollowed, AcceptLost bool
}
