# The publisher's image. From the root of the repository:
#
#   docker build -f deployments/docker/publisher.Dockerfile --build-arg VERSION=1.2.3 .
#
# `make images` builds the first stage alone, around a binary that is built
# outside, and so needs no registry. Everything that both stages say after
# FROM must agree; a test compares them.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM scratch AS prebuilt
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay publisher" \
      org.opencontainers.image.version="$VERSION"
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY publisher /usr/local/bin/publisher
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/publisher", "health"]
ENTRYPOINT ["/usr/local/bin/publisher"]

FROM ${GO_IMAGE} AS build
ARG VERSION=devel
WORKDIR /src
COPY pkg pkg
COPY services/publisher services/publisher
ENV CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local
RUN cd services/publisher && go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/publisher ./cmd/publisher

FROM ${BASE_IMAGE}
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay publisher" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /out/publisher /usr/local/bin/publisher
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/publisher", "health"]
ENTRYPOINT ["/usr/local/bin/publisher"]
