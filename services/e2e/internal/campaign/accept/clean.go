package accept

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// ours are the names that tests and demos give databases.
var ours = regexp.MustCompile(`^(test_[0-9a-f]{24}.*|(shop|shop_read|change_relay)_\d{8}_\d{6})$`)

// cleanTime bounds the removal of what was made.
const cleanTime = time.Minute

// clean drops the databases that have come since before and have a name of ours, also
// where ctx is over, and says what could not be dropped and what else has come.
func clean(ctx context.Context, client *mongo.Client, before []string) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	now, err := client.ListDatabaseNames(ctx, bson.D{})
	if err != nil {
		return []string{fmt.Sprintf("databases could not be listed: %v", err)}
	}
	for _, name := range now {
		if slices.Contains(before, name) {
			continue
		}
		if !ours.MatchString(name) {
			left = append(left, name+": has come meanwhile, with a name that is not this run's")
		} else if err := client.Database(name).Drop(ctx); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return left
}
