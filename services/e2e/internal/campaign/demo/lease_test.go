package demo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func TestServerTime_AsksByTheNameThatTheServerKnows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name  string
		known string
		code  int32
		good  bool
	}{
		{name: "a server that knows hello", known: "hello", good: true},
		{name: "one before 4.4.2", known: "isMaster", code: commandNotFound, good: true},
		{name: "one that refuses", known: "isMaster", code: 13},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := serverTime(func(command bson.D) *mongo.SingleResult {
				if command[0].Key != tt.known {
					return mongo.NewSingleResultFromDocument(bson.D{}, mongo.CommandError{Code: tt.code}, nil)
				}
				return mongo.NewSingleResultFromDocument(bson.D{{Key: "localTime", Value: now}}, nil, nil)
			})
			if (err == nil) != tt.good || tt.good && !got.Equal(now) {
				t.Errorf("got %v, %v; want %v: %v", got, err, now, tt.good)
			}
		})
	}
}
