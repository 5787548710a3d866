# The image of the program that writes events and judges what becomes of them. From the root of the repository:
#
#   docker build -f deployments/docker/traffic.Dockerfile --build-arg VERSION=1.2.3 .
#
# `make images` builds the first stage alone, around a binary that is built
# outside, and so needs no registry. Everything that both stages say after
# FROM must agree; a test compares them.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM scratch AS prebuilt
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay traffic" \
      org.opencontainers.image.version="$VERSION"
COPY traffic /usr/local/bin/traffic
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/traffic"]

FROM ${GO_IMAGE} AS build
ARG VERSION=devel
WORKDIR /src
COPY services/e2e services/e2e
ENV CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local
RUN cd services/e2e && go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/traffic ./cmd/traffic

FROM ${BASE_IMAGE}
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay traffic" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /out/traffic /usr/local/bin/traffic
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/traffic"]
