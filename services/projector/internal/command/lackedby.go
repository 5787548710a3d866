package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/servicebus"
)

// lackRecords are the read database's records of skipped events, for a command that also
// works without: it is opened for the first dead letter that has one, and asked no more once
// it has not answered.
type lackRecords struct {
	client *mongo.Client
	store  *readmodel.Store
	asked  bool
}

// of are the projections that lack a dead letter's event; nil where that is not known.
func (r *lackRecords) of(ctx context.Context, d *servicebus.DeadLetter) *[]string {
	event, placed := contract.Place(d.Message.Message)
	if d.Reason != delivery.ReasonNotApplied || !placed {
		return nil
	}
	if !r.asked {
		r.asked = true
		r.open(ctx)
	}
	if r.store == nil {
		return nil
	}
	by, err := r.store.Skipped.SkippedBy(ctx, &event)
	if err != nil {
		r.store = nil
		return nil
	}
	return &by
}

func (r *lackRecords) open(ctx context.Context) {
	var read config.Read
	declared, err := read.Load(ctx)
	if err != nil {
		return
	}
	cfg := read.Service()
	if r.client, err = mongo.Connect(options.Client().ApplyURI(cfg.MongoURI.Reveal()).SetAppName(readmodel.Application).SetTimeout(cfg.MongoTimeout)); err == nil {
		r.store = readmodel.New(r.client, cfg.ReadModel(declared))
	}
}

func (r *lackRecords) close(ctx context.Context) {
	if r.client != nil {
		_ = r.client.Disconnect(context.WithoutCancel(ctx)) // nothing was written
	}
}
