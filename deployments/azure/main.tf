# What Change Relay needs on Azure besides MongoDB and a cluster: a Service Bus
# namespace with a topic and a session subscription, and an identity for each
# service with no more than the rights that it needs.
#
# An example. It has been formatted and read, but never been applied.

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.0"
    }
  }
}

provider "azurerm" {
  features {}
}

variable "location" {
  type    = string
  default = "westeurope"
}

variable "name" {
  type        = string
  description = "of the resource group, and what the namespace's host name begins with"
  default     = "relay-example"
}

variable "cluster_issuer" {
  type        = string
  description = "OIDC issuer of the Kubernetes cluster: az aks show --query oidcIssuerProfile.issuerUrl"
}

variable "cluster_namespace" {
  type        = string
  description = "Kubernetes namespace of the services"
  default     = "change-relay"
}

resource "azurerm_resource_group" "relay" {
  name     = var.name
  location = var.location
}

resource "azurerm_servicebus_namespace" "relay" {
  name                = var.name
  resource_group_name = azurerm_resource_group.relay.name
  location            = azurerm_resource_group.relay.location
  sku                 = "Standard"
  local_auth_enabled  = false # Entra ID only: there is no key to lose
  minimum_tls_version = "1.2"
}

resource "azurerm_servicebus_topic" "changes" {
  name         = "changes"
  namespace_id = azurerm_servicebus_namespace.relay.id

  partitioning_enabled = true

  # Longer than the longest takeover: what a new leader sends again is dropped.
  requires_duplicate_detection            = true
  duplicate_detection_history_time_window = "PT10M"

  max_size_in_megabytes = 5120
  default_message_ttl   = "P14D" # what projectors may be away for
}

resource "azurerm_servicebus_subscription" "projector" {
  name     = "projector"
  topic_id = azurerm_servicebus_topic.changes.id

  requires_session                     = true
  lock_duration                        = "PT1M"
  max_delivery_count                   = 10
  dead_lettering_on_message_expiration = true # never dropped in silence
}

locals {
  services = {
    publisher = { role = "Azure Service Bus Data Sender", scope = azurerm_servicebus_topic.changes.id }
    projector = { role = "Azure Service Bus Data Receiver", scope = azurerm_servicebus_subscription.projector.id }
  }
}

resource "azurerm_user_assigned_identity" "service" {
  for_each            = local.services
  name                = "${var.name}-${each.key}"
  resource_group_name = azurerm_resource_group.relay.name
  location            = azurerm_resource_group.relay.location
}

resource "azurerm_role_assignment" "service" {
  for_each             = local.services
  scope                = each.value.scope
  role_definition_name = each.value.role
  principal_id         = azurerm_user_assigned_identity.service[each.key].principal_id
}

# Lets the service account of that name act as the identity.
resource "azurerm_federated_identity_credential" "service" {
  for_each            = local.services
  name                = each.key
  resource_group_name = azurerm_resource_group.relay.name
  parent_id           = azurerm_user_assigned_identity.service[each.key].id
  audience            = ["api://AzureADTokenExchange"]
  issuer              = var.cluster_issuer
  subject             = "system:serviceaccount:${var.cluster_namespace}:${each.key}"
}

output "servicebus_namespace" {
  description = "SERVICEBUS_NAMESPACE of both services"
  value       = "${azurerm_servicebus_namespace.relay.name}.servicebus.windows.net"
}

output "client_ids" {
  description = "annotation azure.workload.identity/client-id of each service account"
  value       = { for name, identity in azurerm_user_assigned_identity.service : name => identity.client_id }
}
