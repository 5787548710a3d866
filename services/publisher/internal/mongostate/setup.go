package mongostate

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Codes of the server.
const (
	namespaceExists = 48 // a collection that is there already
	optionsConflict = 85 // an index with these keys has other options
	keysConflict    = 86 // an index with this name has other keys or options
)

// indexes are those that keep the database tidy, by collection.
func indexes() map[string]mongo.IndexModel {
	tidy := mongo.IndexModel{
		Keys:    bson.D{{Key: "expiresAt", Value: 1}},
		Options: options.Index().SetExpireAfterSeconds(leaseTidySeconds),
	}
	return map[string]mongo.IndexModel{
		leases:    tidy,
		instances: tidy,
		parked:    {Keys: bson.D{{Key: "stream", Value: 1}, {Key: "position", Value: 1}}},
	}
}

// EnsureIndexes creates the indexes that keep the database tidy. None is needed
// for correctness, so a role that may not create them loses nothing but tidiness.
func (d *Database) EnsureIndexes(ctx context.Context) error {
	var errs []error
	for name, index := range indexes() {
		_, err := d.db.Collection(name).Indexes().CreateOne(ctx, index)
		if server, ok := errors.AsType[mongo.ServerError](err); ok && (server.HasErrorCode(optionsConflict) || server.HasErrorCode(keysConflict)) {
			err = d.conflict(ctx, name, index, err)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("create indexes in %q: %w", d.db.Name(), err)
	}
	return nil
}

// conflict says how to get rid of an index that another program, or an earlier
// version, made with other options.
func (d *Database) conflict(ctx context.Context, collection string, wanted mongo.IndexModel, why error) error {
	keys, _ := wanted.Keys.(bson.D) // see indexes
	first := keys[0].Key
	there, err := d.db.Collection(collection).Indexes().ListSpecifications(ctx)
	if err != nil {
		return errors.Join(why, err)
	}
	for _, index := range there {
		if _, err := index.KeysDocument.LookupErr(first); err == nil {
			return fmt.Errorf("%s has the index %q on %q with other options than this version makes; nothing rests on it: drop it with "+
				"db.getSiblingDB(%q).%s.dropIndex(%q), and run publisher setup again (%w)", collection, index.Name, first, d.db.Name(), collection, index.Name, why)
		}
	}
	return why
}

// Setup creates the collections and indexes, with a role that may. It may be
// called again.
func (d *Database) Setup(ctx context.Context) error {
	for _, name := range []string{leases, checkpoints, parked, instances, replaced, gaps, moves, streams, resends} {
		err := d.db.CreateCollection(ctx, name)
		if server, ok := errors.AsType[mongo.ServerError](err); ok && server.HasErrorCode(namespaceExists) {
			continue
		}
		if err != nil {
			return fmt.Errorf("create collection %q in %q: %w", name, d.db.Name(), err)
		}
	}
	return d.EnsureIndexes(ctx)
}

// MissingIndexes returns the collections whose index is not there.
func (d *Database) MissingIndexes(ctx context.Context) ([]string, error) {
	var missing []string
	for _, name := range []string{instances, leases, parked} {
		there, err := d.db.Collection(name).Indexes().ListSpecifications(ctx)
		if err != nil {
			return nil, fmt.Errorf("list indexes of %q in %q: %w", name, d.db.Name(), err)
		}
		if len(there) < 2 { // more than that of _id
			missing = append(missing, name)
		}
	}
	return missing, nil
}
