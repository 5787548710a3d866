package contract_test

import (
	"bytes"
	"testing"
	"time"

	"changerelay/pkg/contract"
)

// benchToken has the length of a resume token of a change in a collection with
// ObjectId keys.
const benchToken = "826740B7C1000000012B022C0100296E5A1004D0C1B0B6E7C94A1F8C5B3A0E8E1F2A3B46645F696400646740B7C1A1B2C3D4E5F60718000004"

func benchEvent() contract.Event {
	version := contract.VersionOf(42)
	position := contract.StreamPosition(1732294593, 1, benchToken)
	return contract.Event{
		ID:          "Yh0m6cYHfV6Jf2o3gq3i9oQv5p3kZ6l8m0n1b2v3c4x",
		Source:      contract.Source("shop", "events"),
		Type:        "OrderPlaced",
		AggregateID: "order-000123",
		Time:        time.Date(2025, 11, 22, 15, 8, 17, 123_000_000, time.UTC),
		Operation:   contract.Insert,
		Sequence:    contract.SequenceOf(version, position),
		Position:    position,
		Version:     version,
		Term:        7_000,
		ContentType: contract.ContentTypeJSON,
		Data:        []byte(`{"customer":"c-17","total":129.5,"lines":[{"sku":"A-1","count":2}]}`),
	}
}

func BenchmarkEncode(b *testing.B) {
	e := benchEvent()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.Encode(e, contract.EncodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeGzip(b *testing.B) {
	e := benchEvent()
	e.Data = bytes.Repeat(e.Data, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.Encode(e, contract.EncodeOptions{CompressAbove: 1024}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	m, err := contract.Encode(benchEvent(), contract.EncodeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.Decode(m, contract.DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeGzip(b *testing.B) {
	e := benchEvent()
	e.Data = bytes.Repeat(e.Data, 64)
	m, err := contract.Encode(e, contract.EncodeOptions{CompressAbove: 1024})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.Decode(m, contract.DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessageID(b *testing.B) {
	identity := contract.Identity{
		Database: "shop", Collection: "events", DocumentKey: make([]byte, 22),
		Operation: contract.Insert, Version: contract.VersionOf(42),
		Position: contract.StreamPosition(1732294593, 1, benchToken),
	}
	b.ReportAllocs()
	for b.Loop() {
		identity.MessageID()
	}
}

func BenchmarkStreamPosition(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		contract.StreamPosition(1732294593, 1, benchToken)
	}
}
