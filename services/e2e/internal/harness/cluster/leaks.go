package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Leaked is the name of the check that Leaks makes.
const Leaked = "places where a secret of a service is shown"

const (
	// selectTimeout is how long a database that may be gone is looked for.
	selectTimeout = 5 * time.Second
	// documentsRead is how many of the latest documents of each collection are read.
	documentsRead = 1000
	// secretLength is how long a secret is, at least: a shorter one is a word.
	secretLength = 8
)

// pages are what anybody may read on the admin port.
var pages = []string{"/", "/status", "/metrics", "/live", "/ready"}

// Leaks looks for the secrets of the services wherever they write: their output,
// their admin ports while they run, and the documents that they keep beside the
// source and the read model. It names each place that shows one. An error says that a
// place could not be looked at, and what that is.
func (c *Cluster) Leaks(ctx context.Context) (found []string, err error) {
	secrets := c.secrets()
	look := func(place, text string) {
		if slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(text, s) }) {
			found = append(found, place)
		}
	}
	for _, n := range slices.Concat(c.Publishers, c.Projectors, c.madeTwins()) {
		output, failed := os.ReadFile(n.program.log)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) { // one that was never started has none
			err = errors.Join(err, failed)
		}
		look("output of "+n.Name, string(output))
		for _, page := range pages {
			if _, body, err := n.Get(ctx, page); err == nil {
				look(page+" of "+n.Name, string(body))
			}
		}
	}
	failed := c.withMongo(ctx, func(client *mongo.Client) error {
		for _, database := range []string{c.cfg.Names.StateDatabase, c.cfg.Names.ReadModelDatabase} {
			if err := eachDocument(ctx, client.Database(database), look); err != nil {
				return fmt.Errorf("look for secrets in %s: %w", database, err)
			}
		}
		return nil
	})
	return found, errors.Join(err, failed)
}

func eachDocument(ctx context.Context, database *mongo.Database, look func(place, text string)) error {
	collections, err := database.ListCollectionNames(ctx, bson.D{{Key: "type", Value: "collection"}}) // views show no more
	if err != nil {
		return err
	}
	for _, name := range collections {
		if strings.HasPrefix(name, "system.") {
			continue // the server's own
		}
		latest := options.Find().SetSort(bson.D{{Key: "$natural", Value: -1}}).SetLimit(documentsRead)
		cursor, err := database.Collection(name).Find(ctx, bson.D{}, latest)
		if err != nil {
			return err
		}
		var documents []bson.Raw
		if err := cursor.All(ctx, &documents); err != nil {
			return err
		}
		for _, d := range documents {
			look("a document of "+database.Name()+"."+name, string(d))
		}
	}
	return nil
}

// secrets are those of the services, in each form in which one may be written.
func (c *Cluster) secrets() []string {
	var all []string
	for _, n := range slices.Concat(c.Publishers, c.Projectors) {
		for _, setting := range n.program.env {
			name, value, _ := strings.Cut(setting, "=")
			for _, secret := range secretsOf(name, value) {
				all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:], inJSON(secret))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(slices.DeleteFunc(all, func(s string) bool { return len(s) < secretLength }))
}

// secretsOf are the secrets within a setting.
func secretsOf(name, value string) []string {
	switch {
	case slices.Contains(mongoURIs, name):
		if u, err := url.Parse(value); err == nil {
			password, _ := u.User.Password()
			return []string{password}
		}
	case name == busConnection:
		if key := sharedAccessKey.FindStringSubmatch(value); key != nil {
			return key[1:]
		}
	case name == clientSecret:
		return []string{value}
	case name == traceHeaders:
		return []string{value, canaryHeader}
	}
	return nil
}

// inJSON is a secret as it stands inside a JSON string.
func inJSON(secret string) string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		return secret // a string that JSON cannot say is not written as JSON
	}
	return strings.Trim(string(quoted), `"`)
}
