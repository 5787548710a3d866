# The sandbox's image. From the root of the repository:
#
#   docker build -f deployments/docker/sandbox.Dockerfile --build-arg VERSION=1.2.3 .
#
# `make images` builds the first stage alone, around a binary that is built
# outside, and so needs no registry. Everything that both stages say after
# FROM must agree; a test compares them.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM scratch AS prebuilt
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay sandbox" \
      org.opencontainers.image.version="$VERSION"
COPY sandbox /usr/local/bin/sandbox
USER 65532:65532
EXPOSE 27017 5672 5300 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/sandbox", "health", "--http", "127.0.0.1:8080"]
ENTRYPOINT ["/usr/local/bin/sandbox", "--mongo", "0.0.0.0:27017", "--servicebus", "0.0.0.0:5672", "--management", "0.0.0.0:5300", "--http", "0.0.0.0:8080"]

FROM ${GO_IMAGE} AS build
ARG VERSION=devel
WORKDIR /src
COPY services/sandbox services/sandbox
ENV CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local
RUN cd services/sandbox && go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/sandbox ./cmd/sandbox

FROM ${BASE_IMAGE}
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay sandbox" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /out/sandbox /usr/local/bin/sandbox
USER 65532:65532
EXPOSE 27017 5672 5300 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/sandbox", "health", "--http", "127.0.0.1:8080"]
ENTRYPOINT ["/usr/local/bin/sandbox", "--mongo", "0.0.0.0:27017", "--servicebus", "0.0.0.0:5672", "--management", "0.0.0.0:5300", "--http", "0.0.0.0:8080"]
