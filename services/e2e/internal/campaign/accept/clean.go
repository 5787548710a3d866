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
var ours = regexp.MustCompile(`^(test_[0-9a-f]{24}.*|(shop|shop_read|change_relay)_\d{8}_\d{6}_[a-z2-7]{6})$`)

const (
	// cleanTime bounds the removal of what was made.
	cleanTime = time.Minute
	// looks is how often at most it is looked for, and again is how long after it was dropped.
	looks = 5
	again = 500 * time.Millisecond
)

// clean drops the databases that have come since before and have a name of ours, also
// where ctx is over, and says what could not be dropped and what else has come. It looks
// until none of ours is there any more: a server may still be at what a process has asked
// it for that was killed. What comes as often as it is dropped is named, too.
func clean(ctx context.Context, client *mongo.Client, before []string) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	var dropped []string
	for range looks {
		if dropped, left = drop(ctx, client, before); len(dropped) == 0 {
			return left
		}
		wait, over := context.WithTimeout(ctx, again)
		<-wait.Done()
		over()
	}
	for _, name := range dropped {
		left = append(left, name+": was dropped, and comes again: something still writes to it")
	}
	return left
}

// drop looks once, and drops what is ours.
func drop(ctx context.Context, client *mongo.Client, before []string) (dropped, left []string) {
	now, err := client.ListDatabaseNames(ctx, bson.D{})
	if err != nil {
		return nil, []string{fmt.Sprintf("databases could not be listed: %v", err)}
	}
	for _, name := range now {
		if slices.Contains(before, name) {
			continue
		}
		if !ours.MatchString(name) {
			left = append(left, name+": has come meanwhile, with a name that is not this run's")
		} else if err := client.Database(name).Drop(ctx); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", name, err))
		} else {
			dropped = append(dropped, name)
		}
	}
	return dropped, left
}
