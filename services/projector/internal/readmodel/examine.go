package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/doctor"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/majority"
	"changerelay/services/projector/internal/readmodel/reply"
)

// needed are the actions that the running role must have on each collection.
var needed = []string{"find", "insert", "update"}

// Examination is what was read of the database, and what could not be read because a
// right is missing.
type Examination struct {
	Facts   doctor.Database
	Unasked []doctor.Unasked
}

// Examine reads what the doctor judges. It writes nothing. The error is about a
// server that does not answer.
func (s *Store) Examine(ctx context.Context, collections []string, views []projection.View, keep time.Duration) (Examination, error) {
	e := Examination{Facts: doctor.Database{Name: s.db.Name()}}
	for _, look := range []struct {
		what, right string
		read        func(context.Context, *doctor.Database) error
	}{
		{"the kind of server", "none", s.readTopology},
		{"the members of the replica set", "replSetGetStatus on the cluster, or the role clusterMonitor", s.readMembers},
		{"how far a majority is behind", "none", s.readLag},
		{"the user's privileges", "a user", func(ctx context.Context, d *doctor.Database) error { return s.readPrivileges(ctx, d, collections) }},
		{"the shard keys", "find on config.collections", func(ctx context.Context, d *doctor.Database) error { return s.readShardKeys(ctx, d, collections) }},
		{"the indexes", "listIndexes on the read database", func(ctx context.Context, d *doctor.Database) error { return s.readIndexes(ctx, d, collections, keep) }},
		{"who works there", "find on the read database", func(ctx context.Context, d *doctor.Database) error { return s.readOwner(ctx, d, collections) }},
		{"what keys documents have", "find on the read database", s.readShapes},
		{"how far keyed documents are", "find on the read database", s.readPositions},
		{"whether read collections were emptied", "find on the read database", s.readEmptied},
		{"what was resent and is lacking", "find on the read database", s.readLacks},
		{"what readers see", "listCollections on the read database", func(ctx context.Context, d *doctor.Database) error { return s.readViews(ctx, d, views) }},
		{"what is halted and parked", "find on the read database", s.readParked},
		{"what was skipped", "find on the read database", s.readSkipped},
	} {
		err := look.read(ctx, &e.Facts)
		switch {
		case reply.Has(err, unauthorized):
			e.Unasked = append(e.Unasked, doctor.Unasked{
				Subject: fmt.Sprintf("read database %q", s.db.Name()), What: look.what, Reason: err.Error(), Right: look.right,
			})
		case err != nil:
			return e, fmt.Errorf("read %s of %q: %w", look.what, s.db.Name(), err)
		}
	}
	return e, nil
}

func (s *Store) admin(ctx context.Context, command bson.D, reply any) error {
	return s.db.Client().Database("admin").RunCommand(ctx, command).Decode(reply)
}

func (s *Store) readTopology(ctx context.Context, d *doctor.Database) error {
	var hello struct {
		SetName string `bson:"setName"`
		Message string `bson:"msg"` // isdbgrid for a router
	}
	err := s.admin(ctx, bson.D{{Key: "hello", Value: 1}}, &hello)
	d.Router = hello.Message == "isdbgrid"
	d.Standalone = err == nil && hello.SetName == "" && !d.Router
	return err
}

// readMembers leaves routers and standalone servers alone: they have none.
func (s *Store) readMembers(ctx context.Context, d *doctor.Database) error {
	const noReplicationEnabled, commandNotFound = 76, 59
	var status struct {
		Majority int `bson:"writeMajorityCount"`
		Members  []struct {
			State  int     `bson:"state"`
			Health float64 `bson:"health"`
		} `bson:"members"`
	}
	err := s.admin(ctx, bson.D{{Key: "replSetGetStatus", Value: 1}}, &status)
	if reply.Has(err, noReplicationEnabled) || reply.Has(err, commandNotFound) {
		return nil
	}
	d.Majority = status.Majority
	for _, m := range status.Members {
		const primary, secondary = 1, 2
		if m.Health == 1 && (m.State == primary || m.State == secondary) {
			d.Members++
		}
	}
	return err
}

// longestLag is how long a majority is waited for at most.
const longestLag = 10 * time.Second

func (s *Store) readLag(ctx context.Context, d *doctor.Database) (err error) {
	d.Lag, err = majority.Lag(ctx, s.db.Client(), longestLag)
	return err
}

// readPrivileges leaves a server alone that asks nobody who he is.
func (s *Store) readPrivileges(ctx context.Context, d *doctor.Database, collections []string) error {
	var status struct {
		Info struct {
			Users      []bson.Raw         `bson:"authenticatedUsers"`
			Privileges []doctor.Privilege `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	err := s.admin(ctx, bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}, &status)
	if err == nil && len(status.Info.Users) > 0 {
		d.Lacking = doctor.Lacking(status.Info.Privileges, s.db.Name(), slices.Concat(s.ownCollections(), collections), needed)
	}
	return err
}

func (s *Store) readIndexes(ctx context.Context, d *doctor.Database, collections []string, keep time.Duration) error {
	d.OtherIndex = map[string]time.Duration{}
	for _, want := range s.expiries(collections, keep) {
		specifications, err := s.db.Collection(want.collection).Indexes().ListSpecifications(ctx)
		if err != nil {
			return err
		}
		found := false
		for _, got := range specifications {
			if got.Name != want.name || got.ExpireAfterSeconds == nil {
				continue
			}
			found = true
			if *got.ExpireAfterSeconds != want.seconds() {
				d.OtherIndex[want.collection] = time.Duration(*got.ExpireAfterSeconds) * time.Second
			}
		}
		if !found {
			d.WithoutIndex = append(d.WithoutIndex, want.collection)
		}
	}
	return nil
}

func (s *Store) readOwner(ctx context.Context, d *doctor.Database, collections []string) error {
	err := s.CheckOwner(ctx, collections)
	if errors.Is(err, ErrElsewhere) {
		d.Elsewhere, err = err.Error(), nil
	}
	return err
}

func (s *Store) readShapes(ctx context.Context, d *doctor.Database) error {
	err := s.CheckShapes(ctx)
	if errors.Is(err, ErrReshaped) {
		d.Reshaped, err = err.Error(), nil
	}
	return err
}

func (s *Store) readPositions(ctx context.Context, d *doctor.Database) error {
	var err error
	d.Unnoted, err = s.Writes.CheckPositions(ctx)
	if errors.Is(err, ErrPositionsLost) {
		d.PositionsLost, err = err.Error(), nil
	}
	return err
}

func (s *Store) readEmptied(ctx context.Context, d *doctor.Database) error {
	emptied, err := s.Emptied(ctx)
	for _, e := range emptied {
		d.Emptied = append(d.Emptied, e.String())
	}
	return err
}

func (s *Store) readLacks(ctx context.Context, d *doctor.Database) error {
	return s.Lacks(ctx, "", func(Lack) error {
		d.Incomplete++
		return nil
	})
}

// readViews asks for every collection at once: there may be many views.
func (s *Store) readViews(ctx context.Context, d *doctor.Database, views []projection.View) error {
	found, err := s.db.ListCollectionSpecifications(ctx, bson.D{})
	if err != nil {
		return err
	}
	on := map[string]string{} // of views; a collection stands on itself
	for i := range found {
		on[found[i].Name] = found[i].Name
		if found[i].Type == "view" {
			on[found[i].Name], _ = found[i].Options.Lookup("viewOn").StringValueOK()
		}
	}
	d.Blind = map[string]string{}
	for _, v := range views {
		if on[on[v.Name]] == "" {
			d.Blind[v.Name] = on[v.Name]
		}
	}
	return nil
}

func (s *Store) readSkipped(ctx context.Context, d *doctor.Database) (err error) {
	d.Skipped, err = s.Skipped.Count(ctx)
	return err
}

func (s *Store) readParked(ctx context.Context, d *doctor.Database) error {
	var err error
	if d.Halted, err = s.own(projection.HaltedAggregates).CountDocuments(ctx, bson.D{}); err != nil {
		return err
	}
	if d.Parked, err = s.own(projection.ParkedMessages).CountDocuments(ctx, bson.D{}); err != nil {
		return err
	}
	for reason, n := range map[string]*int{OtherSource: &d.Apart, NotFromTheBeginning: &d.Early} {
		halted, err := s.Halts.HaltedFor(ctx, reason)
		if err != nil {
			return err
		}
		*n = len(halted)
	}
	return nil
}
